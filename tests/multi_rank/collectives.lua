-- Few configs of the collectives, so that their table is through in a moment.
local few = { algorithm = { "Ring", "Tree" }, protocol = { "LL", "Simple" } }

collective "all_reduce" { space = few }
collective "all_gather" { space = { algorithm = { "Ring" }, protocol = { "LL", "Simple" } } }
