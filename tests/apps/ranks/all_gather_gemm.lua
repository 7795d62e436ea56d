-- What contextune may try on all_gather_gemm.cu: any tile, and any grid that is resident at once.

kernel "gather_gemm<32, 32>" {
  co_resident = true, -- it waits for its peers, which wait for it
  variants = { "gather_gemm<16, 64>", "gather_gemm<32, 32>", "gather_gemm<32, 64>", "gather_gemm<64, 64>" },
  space = { per_sm = { 1, 2, 4, 16 } }, -- no SM has room for 16
  apply = function(config, launch)
    launch.grid.x = config.per_sm * device.num_sms
  end,
}

kernel "next_rows" {
  space = { block = { 128, 256, 512 }, per_sm = { 1, 2, 4 } },
  apply = function(config, launch)
    launch.block.x = config.block
    launch.grid.x = config.per_sm * device.num_sms
  end,
}
