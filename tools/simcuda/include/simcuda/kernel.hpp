#pragma once
// Writing simulated kernels in C++. README.md beside this folder shows a whole one.

#include <simcuda/simcuda.h>

#include <array>
#include <cstddef>
#include <utility>

namespace simcuda {

/// Coordinates of one simulated thread, as the built-in variables of CUDA C++ give them.
struct Thread {
  struct Coordinates {
    unsigned x, y, z;
  };
  Coordinates thread;      // threadIdx
  Coordinates block;       // blockIdx
  Coordinates block_size;  // blockDim
  Coordinates grid_size;   // gridDim
  const simcuda_launch* launch;

  [[nodiscard]] std::size_t global_x() const {
    return std::size_t{block.x} * block_size.x + thread.x;
  }
  /// What a grid-stride loop adds in each round.
  [[nodiscard]] std::size_t stride_x() const { return std::size_t{grid_size.x} * block_size.x; }
};

/// Argument `index` of a launch.
template <class T>
[[nodiscard]] T argument(const simcuda_launch& launch, std::size_t index) {
  return *static_cast<const T*>(launch.arguments[index]);
}

/// A `__device__` variable of the launched module, or null.
template <class T>
[[nodiscard]] T* global(const simcuda_launch& launch, const char* name) {
  return static_cast<T*>(simcuda_global(&launch, name, nullptr));
}

[[nodiscard]] inline std::size_t threads_per_block(const simcuda_launch& launch) {
  return std::size_t{launch.block[0]} * launch.block[1] * launch.block[2];
}
[[nodiscard]] inline std::size_t blocks(const simcuda_launch& launch) {
  return std::size_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
}

/// Adds one memory access to the description of a launch. Past SIMCUDA_MAX_ACCESSES it is ignored.
inline simcuda_access& touch(simcuda_work& work, const void* address, std::size_t bytes,
                             unsigned flags) {
  static thread_local simcuda_access ignored;
  simcuda_access& access =
      work.access_count < SIMCUDA_MAX_ACCESSES ? work.accesses[work.access_count++] : ignored;
  access = simcuda_access{address, bytes, flags, 0, 0.0, 0};
  return access;
}

/// Calls `body(const Thread&)` for every thread of the launch, block after block. A kernel whose
/// threads talk to each other inside a block needs a loop of its own instead.
template <class Body>
void for_each_thread(const simcuda_launch& launch, Body&& body) {
  Thread at{};
  at.launch = &launch;
  at.block_size = {launch.block[0], launch.block[1], launch.block[2]};
  at.grid_size = {launch.grid[0], launch.grid[1], launch.grid[2]};
  for (at.block.z = 0; at.block.z < launch.grid[2]; ++at.block.z)
    for (at.block.y = 0; at.block.y < launch.grid[1]; ++at.block.y)
      for (at.block.x = 0; at.block.x < launch.grid[0]; ++at.block.x)
        for (at.thread.z = 0; at.thread.z < launch.block[2]; ++at.thread.z)
          for (at.thread.y = 0; at.thread.y < launch.block[1]; ++at.thread.y)
            for (at.thread.x = 0; at.thread.x < launch.block[0]; ++at.thread.x) body(at);
}

namespace detail {

template <auto Function>
struct PerThread;

template <class... Arguments, void (*Function)(const Thread&, Arguments...)>
struct PerThread<Function> {
  static constexpr std::array<simcuda_parameter, sizeof...(Arguments)> parameters{
      simcuda_parameter{sizeof(Arguments), alignof(Arguments)}...};

  static void run(const simcuda_launch* launch) {
    run_with(*launch, std::index_sequence_for<Arguments...>{});
  }

 private:
  template <std::size_t... Index>
  static void run_with(const simcuda_launch& launch, std::index_sequence<Index...>) {
    for_each_thread(launch, [&](const Thread& thread) {
      Function(thread, argument<Arguments>(launch, Index)...);
    });
  }
};

template <class... Arguments>
inline constexpr std::array<simcuda_parameter, sizeof...(Arguments)> parameter_list{
    simcuda_parameter{sizeof(Arguments), alignof(Arguments)}...};

}  // namespace detail

using Describe = void (*)(const simcuda_launch*, simcuda_work*);
using Run = void (*)(const simcuda_launch*);
using Join = int (*)(const simcuda_launch*, simcuda_joint_work*);

/// A kernel written as what one thread does: `void f(const Thread&, int n, float* x)`.
template <auto Function>
[[nodiscard]] constexpr simcuda_kernel per_thread_kernel(const char* name, Describe describe) {
  using Form = detail::PerThread<Function>;
  return {name, &Form::run, describe, Form::parameters.data(), Form::parameters.size(), 0, 0,
          0,    0,          nullptr};
}

/// A kernel written as what the whole launch does; `Arguments` are its parameter types in order.
template <class... Arguments>
[[nodiscard]] constexpr simcuda_kernel whole_launch_kernel(const char* name, Run run,
                                                           Describe describe) {
  const auto& list = detail::parameter_list<Arguments...>;
  return {name, run, describe, list.data(), list.size(), 0, 0, 0, 0, nullptr};
}

/// A kernel whose every execution is work of several processes, which `join` begins.
template <class... Arguments>
[[nodiscard]] constexpr simcuda_kernel joint_kernel(const char* name, Join join) {
  simcuda_kernel kernel = whole_launch_kernel<Arguments...>(name, nullptr, nullptr);
  kernel.join = join;
  return kernel;
}

}  // namespace simcuda

/// Exports kernels from a kernel file: SIMCUDA_KERNEL_FILE(&first, &second);
#define SIMCUDA_KERNEL_FILE(...)                                                                   \
  static const struct simcuda_kernel* const simcuda_kernel_list[] = {__VA_ARGS__};                 \
  extern "C" {                                                                                     \
  extern const struct simcuda_kernel_table simcuda_kernels __attribute__((visibility("default"))); \
  const struct simcuda_kernel_table simcuda_kernels = {                                            \
      SIMCUDA_VERSION, simcuda_kernel_list,                                                        \
      sizeof simcuda_kernel_list / sizeof *simcuda_kernel_list};                                   \
  }                                                                                                \
  static_assert(SIMCUDA_VERSION == 1)
