-- Space file of in_place.cu. Its launches have one grid for any GPU: `advance_cells` strides over the
-- whole grid, the others take one thread a list.
kernel "advance_cells" {
  params = { "ptr", "i32", "u64" },
  space = { block = { 128, 256, 512, 1024 }, per_sm = { 1, 2, 4, 8 } },
  prune = function(config) return config.block * config.per_sm <= 2048 end,
  apply = function(config, launch)
    launch.block.x = config.block
    launch.grid.x = config.per_sm * device.num_sms
  end,
}

local function one_thread_a_list(config, launch)
  launch.grid.x = launch.block.x * launch.grid.x // config.block
  launch.block.x = config.block
end

kernel "follow" {
  params = { "ptr", "i32", "u64" },
  space = { block = { 32, 64, 256, 512 } },
  apply = one_thread_a_list,
}

kernel "reverse" {
  params = { "ptr", "i32" },
  space = { block = { 32, 64, 256, 512 } },
  apply = one_thread_a_list,
}
