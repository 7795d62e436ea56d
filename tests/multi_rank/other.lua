-- Another space than that of the other ranks: same kernel, other configs.
kernel "rotate" {
  space = { block = { 128, 1024 } },
  apply = function(config, launch) launch.block.x = config.block end,
}
