#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "fault.hpp"
#include "nccl_api.hpp"
#include "tuner_abi.hpp"

namespace simnccl {

/// What the environment says, read once. A variable of ours that is not understood ends the
/// process: only a test sets it, and a test that asks for nothing real must not pass.
struct Settings {
  double noise = 0.01;                             // SIMNCCL_NOISE: sigma
  std::uint64_t seed = 1;                          // SIMNCCL_SEED
  double deadline_seconds = 0;                     // SIMNCCL_DEADLINE_S; 0: none
  int hosts = 1;                                   // SIMNCCL_HOSTS: as a tuner plugin is told
  int channels = 24;                               // SIMNCCL_CHANNELS: of a communicator
  int version = NCCL_VERSION(2, 28, 9);            // SIMNCCL_VERSION: "2.27.7"
  std::string folder;                              // SIMNCCL_FOLDER; empty: none
  std::string trace;                               // SIMNCCL_TRACE; empty: none
  Faults faults;                                   // SIMNCCL_FAULTS
  std::array<bool, algorithm_count> algorithms{};  // NCCL_ALGO and NCCL_NVLS_ENABLE leave these
  std::array<bool, protocol_count> protocols{};    // NCCL_PROTO leaves these

  static Settings& instance();

 private:
  Settings();
};

[[nodiscard]] const char* name_of_algorithm(int algorithm);
[[nodiscard]] const char* name_of_protocol(int protocol);
[[nodiscard]] const char* name_of_function(int function);

}  // namespace simnccl
