-- What may be tried on the kernels of the warm regions. With blocks of 96 threads some do something
-- else than with others.

local families = { "scale", "add", "cap", "pick", "hop" }
local flavours = { "right", "half", "nothing", "twice", "stale" }

for _, family in ipairs(families) do
  for _, flavour in ipairs(flavours) do
    kernel(family .. "_" .. flavour) {
      space = { block = { 96, 256 } },
      apply = function(config, launch) launch.block.x = config.block end,
    }
  end
end
