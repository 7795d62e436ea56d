// The README shows what follows; its test compares the two.
contextune::Choice<ncclResult_t(const float*, float*, std::size_t, cudaStream_t)> all_reduce(
    "all_reduce", {.communicator = communicator, .tolerance = "f32:1e-5"});
all_reduce.size([](auto*, auto*, std::size_t n, auto) { return n * sizeof(float); })
    .buffers([](auto*, auto* out, std::size_t n, auto) {
      return contextune::ChoiceMemory{{{out, n * sizeof(float)}}};  // what is compared
    })
    .add("nccl", with_nccl)  // the first is the default
    .add("ring", contextune::ConfigSpace().parameter("chunk", {65536, 262144}), with_a_ring,
         {.supports = [](const contextune::Problem& p) { return p.bytes >= 65536; }});
all_reduce(gradients, sums, count, stream);
