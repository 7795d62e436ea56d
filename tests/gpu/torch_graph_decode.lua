-- Space file of torch_graph_decode.py. Its Triton kernels stride over their rows or blocks by the number
-- of programs, so any grid computes the same; a grid larger than the work leaves programs idle.
local function grid(config, launch) launch.grid.x = config.programs end

kernel "normalise_rows" {
  space = { programs = { 1, 2, 4, 8, 132 } },
  apply = grid,
}

kernel "gate" {
  space = { programs = { 32, 128, 132, 264 } },
  apply = grid,
}
