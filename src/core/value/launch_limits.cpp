#include <contextune/launch_limits.hpp>

namespace contextune {
namespace {

constexpr std::uint32_t most_block[3] = {1024, 1024, 64};
constexpr std::uint64_t most_grid[3] = {(std::uint64_t{1} << 31U) - 1, 65535, 65535};
/// More need the kernel's consent, which is not asked for here.
constexpr std::uint64_t most_cluster_blocks = 16;
constexpr int first_with_clusters = 90;
/// Registers are given to warps in pieces of that many a thread.
constexpr std::uint64_t register_step = 8;
constexpr std::uint64_t warp = 32;

std::string exceeds(const char* what, std::uint64_t is, const char* who, std::uint64_t most) {
  return std::string(what) + " " + std::to_string(is) + ", and " + who + " allows " +
         std::to_string(most);
}

std::uint64_t volume(const Dim3& extent) {
  return std::uint64_t{extent.x} * extent.y * extent.z;
}

std::string why_not_in_extent(const char* what, const Dim3& extent,
                              const std::uint64_t (&most)[3]) {
  const std::uint32_t is[3] = {extent.x, extent.y, extent.z};
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string where = std::string("the ") + what + "'s " + "xyz"[i] + " is";
    if (is[i] == 0) return where + " 0, and has to be at least 1";
    if (is[i] > most[i]) return exceeds(where.c_str(), is[i], "CUDA", most[i]);
  }
  return {};
}

std::string why_not_in_clusters(const LaunchShape& shape, const Device& device) {
  const Dim3& cluster = shape.cluster;
  if (cluster == Dim3{0, 0, 0}) return {};
  if (device.compute_capability != 0 && device.compute_capability < first_with_clusters) {
    return "it asks for clusters, and the device, of compute capability " +
           std::to_string(device.compute_capability / 10) + "." +
           std::to_string(device.compute_capability % 10) + ", has none";
  }
  if (volume(cluster) == 0) return "one extent of the cluster is 0, and the others are not";
  if (volume(cluster) > most_cluster_blocks)
    return exceeds("blocks in a cluster:", volume(cluster), "CUDA", most_cluster_blocks);
  const bool divides = shape.grid.x % cluster.x == 0 && shape.grid.y % cluster.y == 0 &&
                       shape.grid.z % cluster.z == 0;
  return divides ? std::string() : "the grid is no multiple of the cluster";
}

}  // namespace

std::string why_not(const LaunchShape& shape, const Device& device) {
  constexpr std::uint64_t block_limits[3] = {most_block[0], most_block[1], most_block[2]};
  if (std::string why = why_not_in_extent("block", shape.block, block_limits); !why.empty())
    return why;
  if (std::string why = why_not_in_extent("grid", shape.grid, most_grid); !why.empty()) return why;
  const std::uint64_t threads = volume(shape.block);
  const auto most_threads = static_cast<std::uint64_t>(
      device.max_threads_per_block > 0 ? device.max_threads_per_block : 1024);
  if (threads > most_threads)
    return exceeds("threads in a block:", threads, "the device", most_threads);
  if (device.max_shared_bytes != 0 && shape.shared_bytes > device.max_shared_bytes) {
    return exceeds("bytes of shared memory in a block:", shape.shared_bytes, "the device",
                   device.max_shared_bytes);
  }
  return why_not_in_clusters(shape, device);
}

std::string why_not(const LaunchShape& shape, const KernelLimits& kernel, const Device& device) {
  if (std::string why = why_not(shape, device); !why.empty()) return why;
  const std::uint64_t threads = volume(shape.block);
  const auto most_threads = static_cast<std::uint64_t>(kernel.max_threads_per_block);
  if (kernel.max_threads_per_block > 0 && threads > most_threads)
    return exceeds("threads in a block:", threads, "the kernel", most_threads);
  if (kernel.max_dynamic_shared_bytes != 0 &&
      shape.shared_bytes > kernel.max_dynamic_shared_bytes) {
    return exceeds("bytes of dynamic shared memory in a block:", shape.shared_bytes, "the kernel",
                   kernel.max_dynamic_shared_bytes);
  }
  const std::size_t shared = shape.shared_bytes + kernel.static_shared_bytes;
  if (device.max_shared_bytes != 0 && shared > device.max_shared_bytes) {
    return exceeds("bytes of shared memory in a block, static ones included:", shared, "the device",
                   device.max_shared_bytes);
  }
  if (kernel.registers <= 0 || device.registers_per_sm <= 0) return {};
  const std::uint64_t of_thread =
      (static_cast<std::uint64_t>(kernel.registers) + register_step - 1) / register_step *
      register_step;
  const std::uint64_t registers = (threads + warp - 1) / warp * warp * of_thread;
  const auto most = static_cast<std::uint64_t>(device.registers_per_sm);
  return registers <= most ? std::string()
                           : exceeds("registers of a block:", registers, "the device", most);
}

}  // namespace contextune
