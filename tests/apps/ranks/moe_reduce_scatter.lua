-- What contextune may try on moe_reduce_scatter.cu: its kernels stride over a grid of any size.

for _, name in ipairs({ "weighted_outputs", "add", "next_tokens" }) do
  kernel(name) {
    space = { block = { 128, 256, 512 }, per_sm = { 1, 2, 4, 8 } },
    prune = function(config) return config.block * config.per_sm <= 2048 end,
    apply = function(config, launch)
      launch.block.x = config.block
      launch.grid.x = config.per_sm * device.num_sms
    end,
  }
end
