#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "gpu/driver/driver.hpp"

namespace contextune::intercept {

/// The device memory that graphs of ours take, which the program may want for itself.
///
/// The driver takes it when a graph is instantiated, from memory that it does not give back. It is
/// counted by how much is free before and behind. Others, also other processes, take some
/// meanwhile: no more counts than the graph may take. Any thread.
class GraphMemory {
 public:
  explicit GraphMemory(const gpu::Driver& driver) noexcept : driver_(driver) {}

  /// cuGraphInstantiate in the current context, of so many nodes. CUDA_ERROR_OUT_OF_MEMORY and a
  /// refusal, without a call of it, where graphs have taken `most_bytes`, or less than
  /// `least_free_bytes` is left.
  [[nodiscard]] CUresult instantiate(CUgraphExec* exec, CUgraph graph, unsigned long long flags,
                                     std::size_t nodes) noexcept;

  /// A clause that says why the last graph was refused; null: none was.
  [[nodiscard]] const char* refusal() const noexcept {
    return refusal_.load(std::memory_order_relaxed);
  }

  /// So far; of graphs that are gone as well.
  [[nodiscard]] std::uint64_t bytes() const noexcept {
    return bytes_.load(std::memory_order_relaxed);
  }

  static constexpr std::uint64_t most_bytes = std::uint64_t{64} << 20;
  static constexpr std::uint64_t least_free_bytes = std::uint64_t{256} << 20;
  /// The driver's own memory grows in steps.
  static constexpr std::uint64_t most_bytes_of_step = std::uint64_t{2} << 20;
  static constexpr std::uint64_t most_bytes_of_node = std::uint64_t{4} << 10;

 private:
  [[nodiscard]] CUresult refuse(const char* why) noexcept;

  const gpu::Driver& driver_;
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<const char*> refusal_{nullptr};
};

}  // namespace contextune::intercept
