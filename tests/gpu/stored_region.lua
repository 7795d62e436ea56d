-- Space file of stored_region.cu.
local strided = {
  space = { block = { 128, 256, 512, 1024 }, per_sm = { 1, 2, 4 } },
  prune = function(config) return config.block * config.per_sm <= 2048 end,
  apply = function(config, launch)
    launch.block.x = config.block
    launch.grid.x = config.per_sm * device.num_sms
  end,
}

kernel "relax" (strided)
kernel "square" (strided)
