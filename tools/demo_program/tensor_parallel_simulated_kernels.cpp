// The kernels of tensor_parallel_kernels.cu for the simulated driver: the same sums, and what each
// launch asks of the machine. The times come from the driver's cost model, not from here.
#include <simcuda/kernel.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdlib>

namespace {

using simcuda::argument;
using simcuda::touch;

constexpr std::size_t taps = 8;
constexpr unsigned update = SIMCUDA_READ | SIMCUDA_WRITE;

std::size_t count_of(const simcuda_launch* launch) {
  return argument<unsigned>(*launch, 0);
}
std::size_t size_of(const simcuda_launch* launch, std::size_t index) {
  return static_cast<std::size_t>(argument<int>(*launch, index));
}

// to[i] += weights[i] * row[(shift + i) % width] for all `count` places.
void add_turned(const int* weights, const int* row, std::size_t width, std::size_t shift, int* to,
                std::size_t count) {
  for (std::size_t done = 0; done < count;) {
    const std::size_t from = (shift + done) % width;
    const std::size_t now = std::min(count - done, width - from);
    for (std::size_t i = 0; i < now; ++i) to[done + i] += weights[done + i] * row[from + i];
    done += now;
  }
}

void expand(const simcuda_launch* launch) {
  const std::size_t n = count_of(launch), width = size_of(launch, 1), part = size_of(launch, 2);
  const auto* const weights = argument<const int*>(*launch, 4);
  for (std::size_t begin = 0; begin < n; begin += part) {
    const int* const row = argument<const int*>(*launch, 5) + begin / part * width;
    int* const hidden = argument<int*>(*launch, 6) + begin;
    std::fill_n(hidden, part, 0);
    for (std::size_t tap = 0; tap < taps; ++tap)
      add_turned(weights + tap * part, row, width, size_of(launch, 3) + tap * 37, hidden, part);
    for (std::size_t i = 0; i < part; ++i) hidden[i] = std::min(std::max(hidden[i], 0) >> 6, 127);
  }
}

void contract(const simcuda_launch* launch) {
  const std::size_t n = count_of(launch), width = size_of(launch, 1), part = size_of(launch, 2);
  const auto* const weights = argument<const int*>(*launch, 3);
  for (std::size_t begin = 0; begin < n; begin += width) {
    const int* const row = argument<const int*>(*launch, 4) + begin / width * part;
    int* const y = argument<int*>(*launch, 5) + begin;
    std::fill_n(y, width, 0);
    for (std::size_t tap = 0; tap < taps; ++tap)
      add_turned(weights + tap * width, row, part, tap * 53, y, width);
  }
}

void settle(const simcuda_launch* launch) {
  const auto* const y = argument<const int*>(*launch, 1);
  auto* const x = argument<int*>(*launch, 2);
  for (std::size_t i = 0; i < count_of(launch); ++i)
    x[i] = std::clamp((x[i] >> 1) + (y[i] >> 8), -127, 127);
}

void mix(const simcuda_launch* launch) {
  const std::size_t n = count_of(launch), width = size_of(launch, 1);
  const auto* const weights = argument<const int*>(*launch, 3);
  for (std::size_t begin = 0; begin < n; begin += width) {
    int* const y = argument<int*>(*launch, 5) + begin;
    std::fill_n(y, width, 0);
    for (std::size_t tap = 0; tap < taps; ++tap)
      add_turned(weights + tap * width, argument<const int*>(*launch, 4) + begin, width,
                 size_of(launch, 2) + tap * 29, y, width);
  }
}

void remember(const simcuda_launch* launch) {
  std::copy_n(argument<const int*>(*launch, 1), count_of(launch), argument<int*>(*launch, 2));
}

void normalise(const simcuda_launch* launch) {
  const std::size_t width = size_of(launch, 0);
  for (std::size_t block = 0; block < launch->grid[0]; ++block) {
    int* const row = argument<int*>(*launch, 1) + block * width;
    int largest = 1;
    for (std::size_t i = 0; i < width; ++i) largest = std::max(largest, std::abs(row[i]));
    for (std::size_t i = 0; i < width; ++i) row[i] = row[i] * 127 / largest;
  }
}

// A sum of taps for each of n values: `inputs` values are read, each of them by that many.
void describe_sums(const simcuda_launch* launch, simcuda_work* work, const int* weights,
                   std::size_t row, const int* inputs, std::size_t input_count,
                   const int* outputs) {
  const std::size_t n = count_of(launch);
  work->items = static_cast<double>(n);
  work->flops = (2.0 * taps + 12.0) * static_cast<double>(n);  // the index sums count too
  simcuda_access& by = touch(*work, weights, row * taps * 4, SIMCUDA_READ);
  by.passes = static_cast<double>(n) / static_cast<double>(row);
  by.tile_bytes = std::min(row, simcuda::threads_per_block(*launch)) * taps * 4;
  simcuda_access& from = touch(*work, inputs, input_count * 4, SIMCUDA_READ);
  from.passes = static_cast<double>(taps * n) / static_cast<double>(input_count);
  from.tile_bytes = (simcuda::threads_per_block(*launch) + (taps - 1) * 37) * 4;
  touch(*work, outputs, n * 4, SIMCUDA_WRITE);
}

void describe_expand(const simcuda_launch* launch, simcuda_work* work) {
  const std::size_t part = size_of(launch, 2);
  describe_sums(launch, work, argument<const int*>(*launch, 4), part,
                argument<const int*>(*launch, 5), count_of(launch) / part * size_of(launch, 1),
                argument<int*>(*launch, 6));
}
void describe_contract(const simcuda_launch* launch, simcuda_work* work) {
  const std::size_t width = size_of(launch, 1);
  describe_sums(launch, work, argument<const int*>(*launch, 3), width,
                argument<const int*>(*launch, 4), count_of(launch) / width * size_of(launch, 2),
                argument<int*>(*launch, 5));
}
void describe_mix(const simcuda_launch* launch, simcuda_work* work) {
  describe_sums(launch, work, argument<const int*>(*launch, 3), size_of(launch, 1),
                argument<const int*>(*launch, 4), count_of(launch), argument<int*>(*launch, 5));
}
void describe_settle(const simcuda_launch* launch, simcuda_work* work) {
  work->items = static_cast<double>(count_of(launch));
  work->flops = 4.0 * work->items;
  touch(*work, argument<const int*>(*launch, 1), count_of(launch) * 4, SIMCUDA_READ);
  touch(*work, argument<int*>(*launch, 2), count_of(launch) * 4, update);
}
void describe_remember(const simcuda_launch* launch, simcuda_work* work) {
  work->items = static_cast<double>(count_of(launch));
  touch(*work, argument<const int*>(*launch, 1), count_of(launch) * 4, SIMCUDA_READ);
  touch(*work, argument<int*>(*launch, 2), count_of(launch) * 4, SIMCUDA_WRITE);
}
void describe_normalise(const simcuda_launch* launch, simcuda_work* work) {
  const std::size_t width = size_of(launch, 0);
  const std::size_t n = width * launch->grid[0];
  work->flops = 20.0 * static_cast<double>(n);  // a division of whole numbers is long
  work->block_cycles = 400;                     // shuffles and a barrier
  simcuda_access& rows = touch(*work, argument<int*>(*launch, 1), n * 4, update);
  rows.passes = 2;
  rows.tile_bytes = width * 4;
}

using simcuda::whole_launch_kernel;

const simcuda_kernel kernels[] = {
    whole_launch_kernel<unsigned, int, int, int, const int*, const int*, int*>("expand", &expand,
                                                                               &describe_expand),
    whole_launch_kernel<unsigned, int, int, const int*, const int*, int*>("contract", &contract,
                                                                          &describe_contract),
    whole_launch_kernel<unsigned, const int*, int*>("settle", &settle, &describe_settle),
    whole_launch_kernel<unsigned, int, int, const int*, const int*, int*>("mix", &mix,
                                                                          &describe_mix),
    whole_launch_kernel<unsigned, const int*, int*>("remember", &remember, &describe_remember),
    whole_launch_kernel<int, int*>("normalise", &normalise, &describe_normalise),
};

}  // namespace

SIMCUDA_KERNEL_FILE(&kernels[0], &kernels[1], &kernels[2], &kernels[3], &kernels[4], &kernels[5]);
