-- What contextune may try on the tensor-parallel demo. Its kernels loop over their elements with a
-- stride of the whole grid, so that any block and any grid computes the same; its collectives are of
-- integers, so that every way to do them does.

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

for _, name in ipairs({ "all_reduce", "reduce_scatter", "all_gather" }) do
  collective(name) {
    space = { algorithm = { "Ring" }, protocol = { "LL", "LL128", "Simple" }, channels = { 0 } },
  }
end
