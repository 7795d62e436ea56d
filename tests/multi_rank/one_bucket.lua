-- Few configs, and one bucket for all sizes.
collective "all_reduce" {
  space = { algorithm = { "Ring", "Tree" }, protocol = { "LL", "Simple" } },
  buckets = { 2 << 20 },
}
