-- The README shows what follows; a program is tuned with it as it stands there.
kernel "saxpy_grid_stride" {                 -- demangled name without parameters
  params = { "i32", "f32", "ptr", "ptr" },   -- how to read launch.args
  key    = function(launch) return launch.args[1] end,
  space  = { block = {64, 128, 256, 512}, per_sm = {1, 2, 4, 8} },
  prune  = function(config, launch) return config.block * config.per_sm <= 2048 end,  -- true keeps
  apply  = function(config, launch)
    launch.block.x = config.block
    launch.grid.x  = config.per_sm * device.num_sms
  end,
}
