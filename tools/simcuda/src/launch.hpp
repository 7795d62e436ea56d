#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "contexts.hpp"

namespace simcuda {

/// Values of a launch as they come in, from any of the launch functions or from a graph node.
struct LaunchArguments {
  std::array<unsigned, 3> grid{};
  std::array<unsigned, 3> block{};
  unsigned dynamic_shared_bytes = 0;
  void** parameters = nullptr;  // kernelParams
  void** extra = nullptr;
};

/// A checked launch, ready to run on any stream of its context.
struct Launch {
  const KernelCode* code = nullptr;
  CUfunction handle = nullptr;  // as the program gave it
  Module* module = nullptr;     // in the context of the launch
  std::array<unsigned, 3> grid{}, block{}, cluster{1, 1, 1};
  unsigned dynamic_shared_bytes = 0;
  int carveout_percent = -1;
  bool cooperative = false;
  bool programmatic = false;  // in a stream; in a graph the edges say so
  std::vector<void*> arguments;
};

/// A launch whose arguments live with it.
struct OwnedLaunch {
  Launch launch;
  std::vector<std::byte> packed;

  OwnedLaunch() = default;
  explicit OwnedLaunch(const Launch& from);
  OwnedLaunch(const OwnedLaunch& other) { *this = other; }
  OwnedLaunch& operator=(const OwnedLaunch& other);
};

/// The kernel behind a CUfunction, or behind a CUkernel that was cast to one.
struct Callee {
  const KernelCode* code;
  KernelAttributes* attributes;
  Function* function;  // null behind a CUkernel
};
/// @throws Failure{INVALID_HANDLE}
[[nodiscard]] inline Function& function_at(CUfunction handle) {
  return driver().handles.get<Function>(handle);
}
/// @throws Failure{INVALID_HANDLE}
[[nodiscard]] Callee callee_of(CUfunction handle, int device);
[[nodiscard]] KernelAttributes& attributes_of(Function& function);
[[nodiscard]] KernelAttributes& attributes_of(Kernel& kernel, int device);
[[nodiscard]] KernelAttributes initial_attributes(const KernelCode& code,
                                                  const DeviceProfile& profile);

/// Checks a launch as the driver does. @throws Failure
[[nodiscard]] Launch check_launch(Context& context, CUfunction function,
                                  const LaunchArguments& arguments,
                                  const CUlaunchAttribute* attributes, unsigned attribute_count);

/// The graph node whose launch this is; zeros for an ordinary launch.
struct GraphOrigin {
  std::uint64_t node = 0;
  std::uint32_t graph = 0;
  bool inside = false;   // another node of the graph ran before it
  bool chained = false;  // an edge to it is programmatic
};

/// Runs a launch on a stream: puts its time there and computes its results, now or, when effects
/// are deferred, later.
void run_launch(Stream& stream, const Launch& launch, std::uint32_t correlation,
                GraphOrigin origin = {});

}  // namespace simcuda
