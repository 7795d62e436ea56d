-- Few configs for kernels of the tensor-parallel demo. Its collectives need no declaration.
for _, name in ipairs({ "expand", "contract", "mix" }) do
  kernel(name) {
    space = { block = { 128, 256, 512 } },
    apply = function(config, launch) launch.block.x = config.block end,
  }
end
