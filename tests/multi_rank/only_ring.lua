-- One config that is not the default where trees are slow.
collective "all_reduce" { space = { algorithm = { "Ring" }, protocol = { "LL128" }, channels = { 0 } } }
