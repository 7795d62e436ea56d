#pragma once

#include <simcuda/simcuda.h>

namespace simcupti {

/// The simulated driver of this process, found by name as the real CUPTI finds the real one; the
/// members are null when another driver, or none, is loaded.
struct DriverLink {
  decltype(&simcuda_listen) listen = nullptr;
  decltype(&simcuda_host_time) host_time = nullptr;
  decltype(&simcuda_host_work) host_work = nullptr;
  decltype(&simcuda_context_id) context_id = nullptr;
  decltype(&simcuda_context_device) context_device = nullptr;
  decltype(&simcuda_stream_id) stream_id = nullptr;

  static const DriverLink& instance();
  [[nodiscard]] bool usable() const { return listen != nullptr; }
};

}  // namespace simcupti
