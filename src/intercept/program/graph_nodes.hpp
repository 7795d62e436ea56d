#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/driver/driver.hpp"
#include "intercept/program/launch.hpp"

namespace contextune::intercept {

/// A kernel node of a graph, as a launch. Everything that it refers to belongs to the graph.
struct GraphKernel {
  CUgraphNode node = nullptr;
  CUDA_KERNEL_NODE_PARAMS params{};
  std::vector<CUlaunchAttribute> attributes;  ///< those that launches are told apart by

  /// The node's kernel as a launch of the program. `config` holds what it refers to.
  [[nodiscard]] Launch launch(CUlaunchConfig& config) const noexcept;
};

/// The nodes of a graph that nobody changes any more: a clone of our own.
class GraphNodes {
 public:
  /// @throws Error with a sentence if the graph cannot be instantiated several times, or not be
  /// read
  GraphNodes(const gpu::Driver& driver, CUgraph graph);

  /// In an order that keeps every dependency.
  [[nodiscard]] const std::vector<GraphKernel>& kernels() const noexcept { return kernels_; }
  /// Kernels of child graphs: they run as written.
  [[nodiscard]] const std::vector<GraphKernel>& inner_kernels() const noexcept { return inner_; }
  /// Whether the second always starts after the first; positions in kernels().
  [[nodiscard]] bool ordered(std::size_t first, std::size_t second) const;

 private:
  void read_inner(const gpu::Driver& driver, CUgraphNode child);
  void read_edges(const gpu::Driver& driver, CUgraph graph, const std::vector<CUgraphNode>& nodes);
  [[nodiscard]] std::vector<std::size_t> sorted() const;

  std::vector<GraphKernel> kernels_;
  std::vector<GraphKernel> inner_;
  std::vector<std::size_t> place_;                   ///< of each kernel among all nodes
  std::vector<std::vector<std::size_t>> followers_;  ///< of each node
  bool orders_known_ = true;
};

/// Why launches of that graph cannot be recorded and made again with memory restored: what it does
/// beside kernels, copies and memsets. Empty: they can.
[[nodiscard]] std::string why_unreplayable(const gpu::Driver& driver, CUgraph graph);

/// A copy from device memory to device memory.
struct GraphCopy {
  CUdeviceptr to = 0;
  CUdeviceptr from = 0;
};
/// All of a graph that launches can be made of again, those of its child graphs too. @throws Error
[[nodiscard]] std::vector<GraphCopy> copies_of(const gpu::Driver& driver, CUgraph graph);

/// gpu::kernel_shape of a launch.
[[nodiscard]] std::uint64_t shape_of(const gpu::Driver& driver, CUfunction function,
                                     const Dim3& grid, const Dim3& block,
                                     std::uint32_t shared_bytes);

/// All nodes of a graph. @throws Error
[[nodiscard]] std::vector<CUgraphNode> nodes_of(const gpu::Driver& driver, CUgraph graph);

}  // namespace contextune::intercept
