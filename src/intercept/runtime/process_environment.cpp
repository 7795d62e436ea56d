#include "intercept/runtime/process_environment.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include <contextune/version.hpp>

#include "core/value/launcher.hpp"
#include "environment/variables.hpp"
#include "gpu/driver/device_facts.hpp"
#include "gpu/driver/environment_facts.hpp"
#include "intercept/nccl/nccl_caller.hpp"
#include "intercept/ranks/process_ranks.hpp"

namespace contextune::intercept {
namespace {

/// Variables of CUDA and NCCL that say where things are or what is told, not how they run: which
/// devices are seen is among the hardware.
constexpr std::string_view harmless[] = {
    "CUDA_HOME",        "CUDA_PATH",         "CUDA_ROOT",          "CUDA_VISIBLE_DEVICES",
    "CUDA_CACHE_PATH",  "CUDA_VERSION",      "CUDA_INC_PATH",      "CUDA_TOOLKIT_PATH",
    "CUDA_BIN_PATH",    "CUDA_LIB_PATH",     "NCCL_VERSION",       "NCCL_DEBUG",
    "NCCL_DEBUG_FILE",  "NCCL_DEBUG_SUBSYS", "NCCL_TUNER_PLUGIN",  "NCCL_COMM_ID",
    "NCCL_HOSTID",      "NCCL_CONF_FILE",    "NCCL_HOME",          "NCCL_ROOT",
    "NCCL_INCLUDE_DIR", "NCCL_LIB_DIR",      "NCCL_TOPO_DUMP_FILE"};

Facts settings() {
  Facts found;
  for (const std::string_view text : variables()) {
    const auto end = text.find('=');
    const std::string_view name = text.substr(0, end);
    if (end == std::string_view::npos ||
        (!name.starts_with("CUDA_") && !name.starts_with("NCCL_")) ||
        std::find(std::begin(harmless), std::end(harmless), name) != std::end(harmless)) {
      continue;
    }
    found.emplace_back(name, text.substr(end + 1));
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// "2.28.3"; "none" where the program has made no communicator yet.
std::string nccl_release() {
  const int version = nccl_version();
  if (version == 0) return "none";
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

/// As far as the launcher says. Ranks without a launcher meet on one host, and so do those that
/// meet at a Unix socket.
std::string ranks_on_host(std::uint32_t ranks) {
  const Launched launched = launched_by(variable);
  if (launched.by == nullptr) return std::to_string(ranks);
  if (const char* const size = first_set(variable, launched.by->local_size)) return size;
  const bool is_slurm = launched.by->source == "slurm";
  const std::array each_node{std::string_view(is_slurm ? "SLURM_STEP_TASKS_PER_NODE" : "")};
  if (const char* const sizes = first_set(variable, each_node)) return sizes;
  const std::array address{std::string_view("CONTEXTUNE_ADDRESS")};
  const char* const place = first_set(variable, address);
  const bool here = place != nullptr && std::string_view(place).starts_with("unix:");
  return here ? std::to_string(ranks) : "unknown";
}

}  // namespace

TuningEnvironment ProcessEnvironment::here() {
  const CUdevice device = gpu::current_device(driver_).value_or(0);
  TuningEnvironment here;
  {
    const std::lock_guard lock(mutex_);
    // It takes a while, and does not change.
    if (device != device_) {
      machine_ = {gpu::hardware_facts(driver_), gpu::software_facts(driver_)};
      device_ = device;
    }
    here.hardware = machine_.hardware;
    here.software = machine_.software;
  }
  const std::uint32_t ranks = ranks_.num_ranks();
  here.hardware.emplace_back("ranks", std::to_string(ranks));
  if (ranks > 1) here.hardware.emplace_back("ranks_on_host", ranks_on_host(ranks));
  here.software.emplace_back("contextune", CONTEXTUNE_VERSION);
  here.software.emplace_back("nccl", nccl_release());
  const Facts set = settings();
  here.software.insert(here.software.end(), set.begin(), set.end());
  return here;
}

}  // namespace contextune::intercept
