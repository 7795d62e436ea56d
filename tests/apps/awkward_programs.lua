-- What may be tried on the one kernel of the awkward programs: any block computes the same.
kernel "advance" {
  space = { block = { 128, 256, 512 } },
  apply = function(config, launch) launch.block.x = config.block end,
}
