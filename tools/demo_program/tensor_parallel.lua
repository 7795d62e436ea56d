-- What contextune may try on the kernels of the tensor-parallel demo: those that loop over their
-- elements with a stride of the whole grid, so that any block and any grid computes the same.

local function shape(config, launch)
  launch.block.x = config.block
  launch.grid.x = config.per_sm * device.num_sms
end

for _, name in ipairs({ "expand", "contract", "settle", "mix" }) do
  kernel(name) {
    space = { block = { 128, 256, 512 }, per_sm = { 1, 2, 4 } },
    prune = function(config) return config.block * config.per_sm <= 2048 end,
    apply = shape,
  }
end
