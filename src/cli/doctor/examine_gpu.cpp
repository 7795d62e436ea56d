#include <dlfcn.h>

#include <contextune/error.hpp>
#include <cstdlib>
#include <string_view>

#include "cli/setup/findings.hpp"
#include "cli/words/text.hpp"
#include "gpu/clock/cupti_library.hpp"
#include "gpu/clock/nvml_library.hpp"
#include "gpu/driver/device_facts.hpp"
#include "gpu/driver/driver.hpp"
#include "gpu/driver/nvrtc_library.hpp"
#include "gpu/image/spliced_image.hpp"

namespace contextune::cli {
namespace {

using Verdict = Finding::Verdict;

std::string library_path(const gpu::Driver& driver) {
  Dl_info info{};
  const bool known = dladdr(reinterpret_cast<void*>(driver.cuInit), &info) != 0;
  return known && info.dli_fname != nullptr ? info.dli_fname : "libcuda.so.1";
}

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

void examine_devices(const gpu::Driver& driver, Findings& findings) {
  int count = 0;
  const CUresult result = driver.cuDeviceGetCount(&count);
  if (result != CUDA_SUCCESS || count == 0) {
    findings.push_back({Verdict::Missing, "GPU",
                        result == CUDA_SUCCESS ? "the driver shows none; is CUDA_VISIBLE_DEVICES "
                                                 "set to nothing?"
                                               : gpu::describe(driver, result)});
    return;
  }
  for (int i = 0; i < count; ++i) {
    CUdevice device = 0;
    if (driver.cuDeviceGet(&device, i) != CUDA_SUCCESS) continue;
    const DeviceFacts facts = gpu::device_facts(driver, device);
    std::string text = facts.name + ", compute capability " +
                       std::to_string(facts.compute_capability / 10) + "." +
                       std::to_string(facts.compute_capability % 10) + ", " +
                       count_text(static_cast<unsigned long long>(facts.num_sms), "SM", "SMs");
    if (driver.simulated) text += ", simulated";
    findings.push_back({Verdict::Good, "GPU " + std::to_string(i), text});
  }
}

/// The reason against chained launches, where launches may be gathered; empty: there is none.
std::string why_not_chained(const gpu::Driver& driver) {
  const char* const injected = std::getenv("CUDA_INJECTION64_PATH");
  if (injected != nullptr && *injected != '\0')
    return "CUDA_INJECTION64_PATH loads a profiler or a sanitizer, which shows the code as it is";
  int count = 0;
  (void)driver.cuDeviceGetCount(&count);
  for (int i = 0; i < count; ++i) {
    CUdevice device = 0;
    if (driver.cuDeviceGet(&device, i) != CUDA_SUCCESS) continue;
    const int capability = gpu::device_facts(driver, device).compute_capability;
    if (capability == gpu::entry_wait_architecture) continue;
    return "chaining needs compute capability 9.0 on every GPU, and GPU " + std::to_string(i) +
           " has " + std::to_string(capability / 10) + "." + std::to_string(capability % 10);
  }
  return {};
}

void examine_launches(const gpu::Driver& driver, Findings& findings) {
  const char* const blocking = std::getenv("CUDA_LAUNCH_BLOCKING");
  if (blocking != nullptr && *blocking != '\0' && std::string_view(blocking) != "0") {
    findings.push_back({Verdict::Note, "launches",
                        "neither chained nor gathered: CUDA_LAUNCH_BLOCKING makes each wait for "
                        "its end"});
    return;
  }
  const std::string why = why_not_chained(driver);
  if (why.empty()) {
    findings.push_back({Verdict::Good, "launches", "can be chained and gathered"});
  } else {
    findings.push_back({Verdict::Note, "launches", "can be gathered, but not chained: " + why});
  }
}

void examine_cupti(const gpu::Driver& driver, Findings& findings) {
  std::string why;
  if (const auto cupti = gpu::open_cupti(driver, why)) {
    findings.push_back(
        {Verdict::Good, "CUPTI", cupti->path + ": single launches are timed with it"});
  } else {
    findings.push_back({Verdict::Note, "CUPTI",
                        why + " Without it launches are timed with CUDA events, which are too "
                              "coarse for kernels of a few microseconds."});
  }
}

void examine_nvml(Findings& findings) {
  if (gpu::NvmlLibrary::open(&dlsym)) {
    findings.push_back({Verdict::Good, "NVML", "SM clock and throttling are watched"});
  } else {
    findings.push_back({Verdict::Note, "NVML",
                        "libnvidia-ml.so.1 cannot be used: samples taken under throttling count"});
  }
}

void examine_nvrtc(Findings& findings) {
  try {
    const gpu::NvrtcLibrary nvrtc(&dlsym);
    findings.push_back(
        {Verdict::Good, "NVRTC", nvrtc.path() + ": variants can be built from source"});
  } catch (const Error& error) {
    findings.push_back(
        {Verdict::Note, "NVRTC",
         std::string(error.what()) + "; only variants that are built from source need it"});
  }
}

}  // namespace

void examine_gpu(Findings& findings) {
  gpu::Driver driver;
  try {
    driver = gpu::open_driver();
  } catch (const Error& error) {
    findings.push_back({Verdict::Missing, "driver", error.what()});
    return;
  }
  const CUresult result = driver.cuInit(0);
  if (result != CUDA_SUCCESS) {
    findings.push_back({Verdict::Missing, "driver",
                        library_path(driver) + ": cuInit says " + gpu::describe(driver, result)});
    return;
  }
  std::string text = library_path(driver) + ", CUDA " + version_text(driver.version);
  if (driver.simulated) text += "; SIMULATED: figures are of a model, not of a GPU";
  findings.push_back({driver.simulated ? Verdict::Note : Verdict::Good, "driver", text});
  examine_devices(driver, findings);
  examine_launches(driver, findings);
  examine_cupti(driver, findings);
  if (!driver.simulated) examine_nvml(findings);
  examine_nvrtc(findings);
}

std::optional<DeviceFacts> first_device() {
  try {
    const gpu::Driver driver = gpu::open_driver();
    CUdevice device = 0;
    const bool there =
        driver.cuInit(0) == CUDA_SUCCESS && driver.cuDeviceGet(&device, 0) == CUDA_SUCCESS;
    return there ? std::optional(gpu::device_facts(driver, device)) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace contextune::cli
