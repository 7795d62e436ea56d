-- What contextune may try on the kernels of the demo. Every one of them loops over its elements with
-- a stride of the whole grid, so any block and any grid computes the same.

local blocks = { 128, 256, 512, 1024 }
local per_sm = { 1, 2, 4, 8 }

local function fits(config) return config.block * config.per_sm <= 2048 end

local function shape(config, launch)
  launch.block.x = config.block
  launch.grid.x = config.per_sm * device.num_sms
end

kernel "rotate" {
  space = { block = blocks, per_sm = per_sm },
  prune = fits,
  apply = shape,
}

kernel "attend" {
  space = { block = blocks, per_sm = per_sm },
  prune = fits,
  apply = shape,
}

-- Storing past the cache is good for who needs the cache, and bad for who reads the slot next.
kernel "remember" {
  variants = { "remember", "remember_streaming" },
  space = { block = { 256, 1024 }, per_sm = { 1, 2, 8 } },
  prune = fits,
  apply = shape,
}

-- One, two or four elements of a thread at a time.
kernel "project" {
  variants = { "project", "project_x2", "project_x4" },
  space = { block = { 128, 256, 512 }, per_sm = { 2, 4 } },
  prune = fits,
  apply = shape,
}
