// The kernels of src/examples/kernels.cu for the simulated driver.
#include <simcuda/kernel.hpp>

#include <cstddef>

namespace {

using simcuda::argument;
using simcuda::touch;
using simcuda::whole_launch_kernel;

constexpr unsigned update = SIMCUDA_READ | SIMCUDA_WRITE;
constexpr unsigned write_only = SIMCUDA_WRITE;

// All kernels have the number of elements last.
std::size_t count_of(const simcuda_launch* launch, unsigned parameter) {
  return static_cast<std::size_t>(argument<int>(*launch, parameter));
}

void scale(const simcuda_launch* launch) {
  auto* const x = argument<float*>(*launch, 0);
  const auto factor = argument<float>(*launch, 1);
  for (std::size_t i = 0; i < count_of(launch, 2); ++i) x[i] *= factor;
}
void describe_scale(const simcuda_launch* launch, simcuda_work* work) {
  const std::size_t n = count_of(launch, 2);
  work->items = static_cast<double>(n);
  touch(*work, argument<const float*>(*launch, 0), n * 4, update);
}

void add(const simcuda_launch* launch) {
  auto* const y = argument<float*>(*launch, 0);
  const auto* const x = argument<const float*>(*launch, 1);
  for (std::size_t i = 0; i < count_of(launch, 2); ++i) y[i] += x[i];
}
void describe_add(const simcuda_launch* launch, simcuda_work* work) {
  const std::size_t n = count_of(launch, 2);
  work->items = static_cast<double>(n);
  touch(*work, argument<const float*>(*launch, 0), n * 4, update);
  touch(*work, argument<const float*>(*launch, 1), n * 4, SIMCUDA_READ);
}

// y = or y +=
template <bool adds>
void scaled(const simcuda_launch* launch) {
  auto* const y = argument<float*>(*launch, 0);
  const auto* const x = argument<const float*>(*launch, 1);
  const auto factor = argument<float>(*launch, 2);
  for (std::size_t i = 0; i < count_of(launch, 3); ++i) y[i] = (adds ? y[i] : 0) + factor * x[i];
}
template <bool adds>
void describe_scaled(const simcuda_launch* launch, simcuda_work* work) {
  const std::size_t n = count_of(launch, 3);
  work->items = static_cast<double>(n);
  touch(*work, argument<const float*>(*launch, 0), n * 4, adds ? update : write_only);
  touch(*work, argument<const float*>(*launch, 1), n * 4, SIMCUDA_READ);
}

const simcuda_kernel kernels[] = {
    whole_launch_kernel<float*, float, int>("scale", &scale, &describe_scale),
    whole_launch_kernel<float*, const float*, int>("add", &add, &describe_add),
    whole_launch_kernel<float*, const float*, float, int>("scaled_copy", &scaled<false>,
                                                          &describe_scaled<false>),
    whole_launch_kernel<float*, const float*, float, int>("scaled_add", &scaled<true>,
                                                          &describe_scaled<true>),
};

}  // namespace

SIMCUDA_KERNEL_FILE(&kernels[0], &kernels[1], &kernels[2], &kernels[3]);
