-- Space file of regions.cu: its kernels replaced by functions of a cubin, of a fatbin, and of a
-- source that NVRTC builds.
kernel "accumulate" {
  params = { "ptr", "ptr", "f32", "i32" },
  space = { form = { "cubin", "fatbin" }, block = { 128, 256 }, per_sm = { 4, 8 } },
  apply = function(config, launch)
    launch.module = "region_variants." .. config.form
    launch.kernel = "accumulate_by_four"
    launch.block.x = config.block
    launch.grid.x = config.per_sm * device.num_sms
  end,
}

kernel "smooth<8, 8>" {
  params = { "ptr", "ptr", "i32", "i32" },
  configs = { { width = 32, height = 4 }, { width = 128, height = 1 }, { width = 256, height = 2 } },
  apply = function(config, launch)
    launch.source = "region_variants.cu"
    launch.defines = { WIDTH = config.width, HEIGHT = config.height }
    launch.kernel = "smooth_tile"
    launch.block.x, launch.block.y = config.width, config.height
    launch.grid.x = launch.args[3] // config.width
    launch.grid.y = launch.args[4] // config.height
  end,
}
