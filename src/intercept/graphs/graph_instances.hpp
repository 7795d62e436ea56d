#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "intercept/measuring/graph_work.hpp"
#include "intercept/program/graph_nodes.hpp"
#include "intercept/program/variant.hpp"

namespace contextune::intercept {

/// An instantiation of a graph.
struct GraphInstance {
  CUgraphExec exec = nullptr;
  const void* owner = nullptr;         ///< who numbers the configs
  std::vector<std::uint32_t> configs;  ///< of the owner's sites in the graph
  std::shared_ptr<const GraphWork> work;
};

/// Instantiations of one graph under several configs, made from a clone of it that stays as the
/// program made it. A bounded number; the least recently used goes first. Serialised by the caller.
/// Destroying one that runs is allowed: the driver frees it when it has ended.
class GraphInstances {
 public:
  static constexpr std::size_t most = 16;

  /// @param clone not owned
  /// @param flags of the program's own instantiation
  GraphInstances(const gpu::Driver& driver, CUgraph clone, unsigned long long flags)
      : driver_(driver), clone_(clone), flags_(flags) {}
  ~GraphInstances() { clear(); }
  GraphInstances(const GraphInstances&) = delete;
  GraphInstances& operator=(const GraphInstances&) = delete;

  /// Null: there is none. Valid until the next call that is not a find.
  [[nodiscard]] const GraphInstance* find(const void* owner,
                                          const std::vector<std::uint32_t>& configs);

  /// Keeps it, and destroys the least recently used one beyond `most`, but never `busy`.
  const GraphInstance& add(GraphInstance instance, CUgraphExec busy);

  /// Destroys those of that owner but `kept`.
  void keep_only(const void* owner, CUgraphExec kept);
  void clear();

  /// An instantiation where `variants[i]`, unless null, replaces the i-th kernel.
  /// @param why what failed
  /// @return null: it cannot be made; `culprit` is then the kernel that was refused, if it was one
  [[nodiscard]] CUgraphExec make(const GraphNodes& nodes,
                                 const std::vector<const Variant*>& variants, CUresult& why,
                                 std::size_t& culprit) const;

  static constexpr std::size_t nobody = static_cast<std::size_t>(-1);
  [[nodiscard]] std::size_t size() const noexcept { return all_.size(); }

 private:
  [[nodiscard]] CUresult change(CUgraph graph, const GraphKernel& kernel,
                                const Variant& variant) const;

  const gpu::Driver& driver_;
  CUgraph clone_;
  unsigned long long flags_;
  std::list<GraphInstance> all_;  ///< most recently used first
};

}  // namespace contextune::intercept
