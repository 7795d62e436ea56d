-- What may be tried on the kernels of unmodified.c. Their loops go over all elements in any shape.
for _, name in ipairs { "scaled_copy", "add" } do
  kernel(name) {
    space = { block = { 64, 128, 256, 512 }, per_sm = { 1, 2, 4 } },
    apply = function(config, launch)
      launch.block.x = config.block
      launch.grid.x = config.per_sm * device.num_sms
    end,
  }
end
