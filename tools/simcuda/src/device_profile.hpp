#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace simcuda {

/// The figures that the simulated GPU is made of: those of an H200, as far as they are published or
/// were measured on one. Plain data. Times in seconds, rates per second.
struct DeviceProfile {
  std::string name = "Simulated GPU (H200 figures)";
  unsigned compute_capability = 90;
  unsigned num_sms = 132;
  unsigned warp_size = 32;
  unsigned max_threads_per_block = 1024;
  unsigned max_threads_per_sm = 2048;
  unsigned max_blocks_per_sm = 32;
  unsigned registers_per_sm = 65536;
  unsigned register_granularity = 256;  // a warp gets its registers in steps of this
  std::size_t shared_per_sm_bytes = 228 * 1024;
  std::size_t shared_per_block_bytes = 48 * 1024;
  std::size_t shared_per_block_optin_bytes = 227 * 1024;
  std::size_t shared_reserved_bytes = 1024;  // of each block, for the system
  std::size_t l1_bytes = 256 * 1024;         // shared memory is carved out of it
  std::size_t l2_bytes = 50 * 1024 * 1024;
  std::size_t memory_bytes = std::size_t{16} << 30;
  unsigned max_cluster_blocks = 8;
  unsigned max_cluster_blocks_non_portable = 16;

  double sm_clock = 1.98e9;
  double flops_per_cycle_and_sm = 256;
  double l1_bytes_per_cycle_and_sm = 64;
  double dram_bandwidth = 4.2e12;
  double l2_near_bandwidth = 6.4e12;
  double l2_far_bandwidth = 4.6e12;
  double dram_latency = 0.48e-6;
  double l2_near_latency = 0.14e-6;
  double l2_far_latency = 0.22e-6;
  double block_start = 0.2e-6;
  double block_dispatch = 0.4e-9;
  double drain_share = 0.1;     // of a wave, with one block on each SM
  double kernel_base = 0.4e-6;  // with block_start: an empty kernel reads 0.6 us
  double carveout_switch = 0.25e-6;

  // Around a kernel: between two of a stream, of one graph, and of two that are chained.
  double stream_gap = 0.9e-6;
  double graph_gap = 0.5e-6;
  double chained_gap = 0.3e-6;
  double chained_graph_gap = 0.1e-6;
  double entry_detour = 50e-9;    // a kernel that begins with a branch to the end of its code
  double event_margin = 1.75e-6;  // each side of the timestamp that an event takes
  double submit_latency = 2.5e-6;
  double copy_latency = 1.2e-6;
  double host_copy_bandwidth = 50e9;
  double peer_copy_bandwidth = 380e9;

  // What a driver call costs the host.
  double launch_cost = 2.2e-6;
  double chained_launch_cost = 1.7e-6;
  double graph_launch_cost = 1.1e-6;
  double graph_node_cost = 20e-9;  // of each node of a graph that is launched
  double instantiate_node_cost = 8.5e-6;
};

/// SIMCUDA_GPU: "FIELD=VALUE,...", of name, compute_capability ("8.9"), num_sms and memory_mib;
/// what is not named stays. Nothing: it is not understood.
[[nodiscard]] std::optional<DeviceProfile> parse_profile(const std::string& text);

}  // namespace simcuda
