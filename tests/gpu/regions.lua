-- Space file of regions.cu.
kernel "accumulate" {
  params = { "ptr", "ptr", "f32", "i32" },
  space = { block = { 128, 256, 512 }, per_sm = { 1, 2, 4, 8 } },
  prune = function(config) return config.block * config.per_sm <= 2048 end,
  apply = function(config, launch)
    launch.block.x = config.block
    launch.grid.x = config.per_sm * device.num_sms
  end,
}

kernel "smooth<8, 8>" {
  params = { "ptr", "ptr", "i32", "i32" },
  configs = {
    { width = 16, height = 16 },
    { width = 32, height = 8 },
    { width = 64, height = 4 },
    { width = 128, height = 2 },
  },
  apply = function(config, launch)
    launch.kernel = "smooth<" .. config.width .. ", " .. config.height .. ">"
    launch.block.x, launch.block.y = config.width, config.height
    launch.grid.x = launch.args[3] // config.width
    launch.grid.y = launch.args[4] // config.height
  end,
}
