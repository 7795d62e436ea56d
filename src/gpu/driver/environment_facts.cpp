#include "gpu/driver/environment_facts.hpp"

#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include "gpu/driver/device_facts.hpp"

namespace contextune::gpu {
namespace {

constexpr const char* unknown = "unknown";

std::string text_or_unknown(const std::string& text) {
  return text.empty() ? unknown : text;
}

std::string memory_mib(const Driver& driver, CUdevice device) {
  std::size_t bytes = 0;
  if (driver.cuDeviceTotalMem == nullptr ||
      driver.cuDeviceTotalMem(&bytes, device) != CUDA_SUCCESS) {
    return unknown;
  }
  return std::to_string(bytes >> 20U);
}

std::string links(const Driver& driver, int count) {
  if (driver.cuDeviceGetP2PAttribute == nullptr) return unknown;
  int pairs = 0;
  int linked = 0;
  int atomic = 0;
  const auto has = [&](CUdevice_P2PAttribute attribute, int from, int to) {
    int value = 0;
    return driver.cuDeviceGetP2PAttribute(&value, attribute, from, to) == CUDA_SUCCESS &&
           value != 0;
  };
  for (int from = 0; from < count; ++from) {
    for (int to = from + 1; to < count; ++to) {
      ++pairs;
      if (!has(CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, from, to)) continue;
      ++linked;
      if (has(CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, from, to)) ++atomic;
    }
  }
  std::string text = linked == 0 ? "none" : linked == pairs ? "all" : "some";
  if (linked > 0 && atomic == linked) text += "+atomics";
  return text;
}

/// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Tue ...": the first word that
/// begins with a digit and has a point.
std::string driver_release() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  std::getline(file, line);
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    const bool is_number = word.front() >= '0' && word.front() <= '9';
    if (is_number && word.find('.') != std::string::npos) return word;
  }
  return {};
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  constexpr std::string_view field = "model name";
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(field)) continue;
    const auto at = line.find(": ");
    return at == std::string::npos ? std::string() : line.substr(at + 2);
  }
  return {};
}

}  // namespace

Facts hardware_facts(const Driver& driver) {
  int count = 0;
  if (driver.cuDeviceGetCount(&count) != CUDA_SUCCESS) count = 0;
  const CUdevice device = current_device(driver).value_or(0);
  std::string others;
  for (int other = 0; other < count; ++other) {
    const std::string name = device_facts(driver, other).name;
    if (name != device_facts(driver, device).name) others += (others.empty() ? "" : ", ") + name;
  }
  const DeviceFacts facts = device_facts(driver, device);
  Facts hardware = {{"gpu", text_or_unknown(facts.name)},
                    {"compute_capability", std::to_string(facts.compute_capability / 10) + "." +
                                               std::to_string(facts.compute_capability % 10)},
                    {"num_sms", std::to_string(facts.num_sms)},
                    {"memory_mib", memory_mib(driver, device)},
                    {"gpus", std::to_string(count)},
                    {"links", links(driver, count)}};
  if (!others.empty()) hardware.emplace_back(other_gpus, others);
  return hardware;
}

Facts software_facts(const Driver& driver) {
  return {{"driver", driver.simulated ? "simulated" : text_or_unknown(driver_release())},
          {"cuda", std::to_string(driver.version / 1000) + "." +
                       std::to_string(driver.version % 1000 / 10)},
          {"cpu", text_or_unknown(cpu_model())}};
}

}  // namespace contextune::gpu
