-- Few configs, so that a job of several ranks is through in a moment, and some for every way in which
-- a trial can go.
local function block(config, launch) launch.block.x = config.block end

kernel "rotate" { space = { block = { 128, 256, 512 } }, apply = block }

kernel "attend" { space = { block = { 128, 256, 512, 1024 } }, apply = block }

kernel "project" {
  variants = { "project", "project_x2", "project_x4" },
  space = { block = { 128, 256 } },
  apply = block,
}
