-- Another space than that of the other ranks: fewer configs of the same collectives.
collective "all_reduce" { space = { algorithm = { "Ring" }, protocol = { "LL", "Simple" } } }
