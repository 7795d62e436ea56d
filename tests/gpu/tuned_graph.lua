-- Space file of tuned_graph.cu.
local function strided(blocks)
  return {
    space = { block = blocks, per_sm = { 1, 2, 4 } },
    apply = function(config, launch)
      launch.block.x = config.block
      launch.grid.x = config.per_sm * device.num_sms
    end,
  }
end

kernel "advance" (strided { 128, 256, 512 })
kernel "accumulate" (strided { 256, 512 })
