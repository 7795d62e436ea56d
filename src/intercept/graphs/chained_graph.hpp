#pragma once

#include <cuda.h>

#include <cstddef>
#include <set>

#include "gpu/driver/driver.hpp"
#include "intercept/program/graph_nodes.hpp"
#include "intercept/submit/graph_memory.hpp"
#include "intercept/submit/submitted_kernels.hpp"
#include "preload/contextune_abi.h"

namespace contextune::intercept {

/// A second instantiation of a graph of the program's, in which a kernel is prepared while the one
/// before it ends. The program's graph and its own instantiation stay as they are.
///
/// An edge becomes programmatic if it leads from a kernel and is the only one to its own kernel,
/// which waits at its entry. The kernel before must neither trigger nor launch from the device.
/// Neither kernel, nor any edge to them, may have something special that its author set. Where
/// kernels stay ordinary, so that none is left, the program's own instantiation serves as well.
///
/// Serialised by the caller; nothing throws but `build`.
class ChainedGraph {
 public:
  /// @param but kernels that are not chained, as Submission::ordinary has them
  ChainedGraph(const gpu::Driver& driver, SubmittedKernels& kernels, GraphMemory& memory,
               unsigned long long flags, CUcontext context, std::uint32_t but = 0)
      : ordinary(but),
        driver_(driver),
        kernels_(kernels),
        memory_(memory),
        flags_(flags),
        context_(context) {}
  ~ChainedGraph() { clear(); }
  ChainedGraph(const ChainedGraph&) = delete;
  ChainedGraph& operator=(const ChainedGraph&) = delete;

  /// Whether the driver has all that it takes.
  [[nodiscard]] static bool possible(const gpu::Driver& driver) noexcept;

  /// Instantiates a copy of that graph.
  /// @param clone_of_program the graph is our clone of the program's, and outlives this: nodes are
  ///                         told by the program's. False: it is the program's own
  /// @throws Error with a sentence if no edge of it may be programmatic, or it cannot be made
  void build(CUgraph graph, bool clone_of_program);

  /// Follows a change that the program made to its instantiation: cuGraphExec*SetParams,
  /// cuGraphExecUpdate, cuGraphNodeSetEnabled, with the arguments as the frontend shows them.
  /// @return false: this one is out of step, and must not be launched any more
  [[nodiscard]] bool follow(contextune_fn fn, void* const* args) noexcept;

  void upload(CUstream stream) const noexcept {
    if (exec_ != nullptr) (void)driver_.cuGraphUpload(exec_, stream);
  }

  /// Null: the program's own serves.
  [[nodiscard]] CUgraphExec exec() const noexcept { return exec_; }
  /// Programmatic edges.
  [[nodiscard]] std::size_t edges() const noexcept { return waiting_.size(); }

  const std::uint32_t ordinary;

 private:
  static constexpr int most_rebuilds = 4;

  void clear() noexcept;
  /// Makes edges of a copy programmatic, and notes their ends. @throws Error
  void chain(CUgraph copy, std::set<CUgraphNode>& followed, std::set<CUgraphNode>& waiting);
  [[nodiscard]] SubmittedKernel* kernel_of(CUfunction function, CUkernel kernel,
                                           CUcontext context) noexcept;
  [[nodiscard]] bool is_plain(const GraphKernel& kernel) const;
  /// Null: there is none.
  [[nodiscard]] CUgraphNode node_of(CUgraphNode of_program) const noexcept;
  [[nodiscard]] bool may_become(CUgraphNode node, CUfunction function, CUkernel kernel,
                                CUcontext context) noexcept;
  [[nodiscard]] bool set_kernel(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS& params) noexcept;
  [[nodiscard]] bool update(CUgraph graph) noexcept;

  const gpu::Driver& driver_;
  SubmittedKernels& kernels_;
  GraphMemory& memory_;
  const unsigned long long flags_;
  const CUcontext context_;
  SubmittedKernelCache cache_;
  CUgraph clone_ = nullptr;  ///< not owned; null: nodes of graph_ are told by the program's
  CUgraph graph_ = nullptr;
  CUgraphExec exec_ = nullptr;
  std::set<CUgraphNode> followed_;  ///< nodes of graph_ from which a programmatic edge leads
  std::set<CUgraphNode> waiting_;   ///< to which one leads
  int rebuilds_ = 0;
};

}  // namespace contextune::intercept
