#include "gpu/clock/nvml_library.hpp"

#include <dlfcn.h>

namespace contextune::gpu {
namespace {

constexpr int nvml_success = 0;
constexpr int nvml_clock_sm = 1;

template <typename Function>
bool resolve(Function& function, void* library, Dlsym find_symbol, const char* name) {
  function = reinterpret_cast<Function>(find_symbol(library, name));
  return function != nullptr;
}

}  // namespace

std::optional<NvmlLibrary> NvmlLibrary::open(Dlsym find_symbol) {
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) return std::nullopt;
  NvmlLibrary nvml;
  const bool complete =
      resolve(nvml.init_, library, find_symbol, "nvmlInit_v2") &&
      resolve(nvml.handle_, library, find_symbol, "nvmlDeviceGetHandleByPciBusId_v2") &&
      resolve(nvml.clock_, library, find_symbol, "nvmlDeviceGetClockInfo") &&
      // Renamed in driver 535; the old name stays.
      (resolve(nvml.reasons_, library, find_symbol, "nvmlDeviceGetCurrentClocksEventReasons") ||
       resolve(nvml.reasons_, library, find_symbol, "nvmlDeviceGetCurrentClocksThrottleReasons"));
  if (!complete || nvml.init_() != nvml_success) return std::nullopt;
  return nvml;
}

NvmlLibrary::Device NvmlLibrary::device(const std::string& pci_bus_id) const {
  Device device = nullptr;
  return handle_(pci_bus_id.c_str(), &device) == nvml_success ? device : nullptr;
}

double NvmlLibrary::sm_clock(Device device) const {
  unsigned int megahertz = 0;
  return clock_(device, nvml_clock_sm, &megahertz) == nvml_success ? megahertz * 1e6 : 0;
}

std::uint64_t NvmlLibrary::clock_reasons(Device device) const {
  unsigned long long reasons = 0;
  return reasons_(device, &reasons) == nvml_success ? reasons : 0;
}

}  // namespace contextune::gpu
