// The kernels of module_variables.cu in a program on the CUDA runtime.
#include "module_variables.hpp"

#include "module_variables.cu"
#include "program.hpp"

void launch_count() {
  count<<<1, 1>>>(1, 0.5f);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
}

void* count_kernel() {
  cudaKernel_t kernel = nullptr;
  CUDA_CHECK(cudaGetKernel(&kernel, reinterpret_cast<const void*>(&count)));
  return kernel;
}

template <typename T>
static KnownVariable known(const char* part, const T& symbol) {
  KnownVariable one{part, nullptr, 0};
  CUDA_CHECK(cudaGetSymbolAddress(&one.address, symbol));
  CUDA_CHECK(cudaGetSymbolSize(&one.bytes, symbol));
  return one;
}

std::size_t known_variables(KnownVariable* to, std::size_t most) {
  const KnownVariable all[] = {known("unnamed_counter", unnamed_counter),
                               known("plain_counter", plain_counter),
                               known("static_counter", static_counter),
                               known("initialised", initialised),
                               known("managed_counter", managed_counter),
                               known("constant_table", constant_table),
                               known("11in_template", in_template<5>),
                               known("static_in_template", static_in_template<2>),
                               known("odd_bytes", odd_bytes)};
  const std::size_t count = sizeof(all) / sizeof(*all);
  for (std::size_t i = 0; i < count && i < most; ++i) to[i] = all[i];
  return count;
}
