-- What contextune may try on all_gather_moe.cu.

kernel "grouped_gemm<2>" {
  variants = { "grouped_gemm<2>", "grouped_gemm<4>", "grouped_gemm<8>", "grouped_gemm<16>" },
  space = { per_sm = { 1, 2, 4 } },
  apply = function(config, launch)
    launch.grid.x = config.per_sm * device.num_sms
  end,
}

kernel "next_tokens" {
  space = { block = { 128, 256, 512 }, per_sm = { 1, 2, 4 } },
  apply = function(config, launch)
    launch.block.x = config.block
    launch.grid.x = config.per_sm * device.num_sms
  end,
}
