// CONTEXTUAL_AUTOTUNE around kernels of the CUDA runtime API: a tunable, and a raw <<<>>> launch of
// a kernel that is declared in C++. Prints what was chosen; fails if a result is wrong.
#include <cuda_runtime.h>

#include <contextune/contextune.hpp>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace {

#define CUDA_CHECK(call)                                                 \
  do {                                                                   \
    const cudaError_t result = (call);                                   \
    if (result != cudaSuccess) {                                         \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, \
                   cudaGetErrorString(result));                          \
      std::exit(1);                                                      \
    }                                                                    \
  } while (0)

__global__ void scale(float* x, float factor, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    x[i] *= factor;
}

template <int unroll>
__global__ void add(float* y, const float* x, int n) {
  const int stride = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride * unroll) {
#pragma unroll
    for (int j = 0; j < unroll; ++j)
      if (i + j * stride < n) y[i + j * stride] += x[i + j * stride];
  }
}

constexpr int n = 1 << 22;

/// x and y as they are after one run of the region.
bool check(const float* x, const float* y, float expected_x, float expected_y, const char* when) {
  std::vector<float> host(n);
  for (const auto& [device, expected, name] :
       {std::tuple{x, expected_x, "x"}, std::tuple{y, expected_y, "y"}}) {
    CUDA_CHECK(cudaMemcpy(host.data(), device, n * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; ++i) {
      if (host[static_cast<std::size_t>(i)] == expected) continue;
      std::fprintf(stderr, "%s: %s[%d] is %g, not %g\n", when, name, i,
                   static_cast<double>(host[static_cast<std::size_t>(i)]),
                   static_cast<double>(expected));
      return false;
    }
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) {
    const bool help = std::strcmp(argv[1], "--help") == 0;
    std::fprintf(help ? stdout : stderr,
                 "usage: runtime_macro\nTunes a region of two runtime-API kernels and checks its "
                 "results.\n");
    return help ? 0 : 2;
  }
  contextune::Kernel(contextune::kernel_name<scale>())
      .space(contextune::ConfigSpace()
                 .parameter("block", {128, 256, 512, 1024})
                 .parameter("per_sm", {1, 2, 4}))
      .key([](const contextune::LaunchInfo& launch) {
        return contextune::Key{{"n", launch.argument<int>(2)}};
      })
      .apply([](const contextune::Config& config, contextune::LaunchEdit& launch) {
        launch.set_block({static_cast<std::uint32_t>(config.get_int("block"))});
        launch.set_grid(
            {static_cast<std::uint32_t>(config.get_int("per_sm") * launch.device().num_sms)});
      })
      .declare();

  float* x = nullptr;
  float* y = nullptr;
  CUDA_CHECK(cudaMalloc(&x, n * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&y, n * sizeof(float)));
  std::vector<float> ones(n, 1.0F);
  CUDA_CHECK(cudaMemcpy(x, ones.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(y, ones.data(), n * sizeof(float), cudaMemcpyHostToDevice));

  contextune::Tunable add_to(
      "add",
      contextune::ConfigSpace().parameter("unroll", {1, 4}).parameter("block", {64, 256, 4096}),
      [](float*, const float*, int count) {
        return contextune::Key{{"n", count}};
      },
      [](const contextune::Config& config, float* to, const float* from, int count) {
        const int block = static_cast<int>(config.get_int("block"));
        const int grid = (count + block - 1) / block / static_cast<int>(config.get_int("unroll"));
        if (config.get_int("unroll") == 1)
          add<1><<<grid, block>>>(to, from, count);
        else
          add<4><<<grid, block>>>(to, from, count);
        return cudaGetLastError();
      });

  int runs = 0;
  CONTEXTUAL_AUTOTUNE("macro", {.restore = {{x, n * sizeof(float)}, {y, n * sizeof(float)}}}) {
    ++runs;
    scale<<<16, 32>>>(x, 3.0F, n);
    CUDA_CHECK(add_to(y, x, n));
  }
  std::printf("the body ran %d times\n", runs);
  if (!check(x, y, 3.0F, 4.0F, "after the tuning")) return 1;
  CONTEXTUAL_AUTOTUNE("macro", {.restore = {{x, n * sizeof(float)}, {y, n * sizeof(float)}}}) {
    scale<<<16, 32>>>(x, 2.0F, n);
    CUDA_CHECK(add_to(y, x, n));
  }
  if (!check(x, y, 6.0F, 10.0F, "in the tuned entry")) return 1;
  CUDA_CHECK(cudaDeviceSynchronize());
  std::printf("results are right; state %d%s%s\n", static_cast<int>(contextune_current_state()),
              *contextune_state_reason() != '\0' ? ": " : "", contextune_state_reason());
  return runs > 1 || contextune_current_state() == contextune_state_off ? 0 : 1;
}
