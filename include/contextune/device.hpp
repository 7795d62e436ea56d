#pragma once

#include <cstddef>
#include <string>

namespace contextune {

/// The device that a launch goes to. A number is 0 where it is not known.
struct Device {
  int num_sms = 0;
  int compute_capability = 0;  ///< 90 for 9.0
  int max_threads_per_block = 0;
  std::size_t max_shared_bytes = 0;  ///< a block, opt-in
  int registers_per_sm = 0;
  std::string name = {};  ///< "NVIDIA H200"; empty: not known
};

/// Facts of the device of this thread's CUDA context; nothing is known where there is none. The
/// same whether contextune is switched on or off.
[[nodiscard]] Device current_device() noexcept;

}  // namespace contextune
