-- What may be tried on the kernels of the random regions. Kernels with a second name do something
-- else with blocks of 96 threads than with others.

local function shape(config, launch)
  launch.block.x = config.block
  launch.grid.x = config.grid
end

local function declare(name, blocks, grids)
  kernel(name) { space = { block = blocks, grid = grids }, apply = shape }
end

for _, family in ipairs { "twist", "mix", "job", "through", "count", "tally", "recall", "odd" } do
  declare(family, { 32, 64, 96, 256 }, { 2 })
  declare(family .. "_wrong", { 96, 64 }, { 1, 3 })
  declare(family .. "_stray", { 64, 96 }, { 2 })
end
-- The first that is wrong in the other's company is not the same for both.
declare("leave", { 64, 96 }, { 1 })
declare("clear", { 96, 64 }, { 1 })
declare("shuffle", { 64, 1024 }, { 1 })
declare("unstable", { 64 }, { 1 })
