#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "intercept/graphs/chained_graph.hpp"
#include "intercept/graphs/graph_instances.hpp"
#include "intercept/graphs/graph_order.hpp"
#include "intercept/host/event_log.hpp"
#include "intercept/program/graph_call.hpp"

namespace contextune::intercept {

class LaunchRegion;

/// A region's own knowledge of one graph.
class GraphInRegion {
 public:
  virtual ~GraphInRegion() = default;
};

/// A graph that the program has instantiated, with a clone of its own from which other
/// instantiations are made. Every launch of it goes through here, so that they stay one after the
/// other. Any thread, under `mutex`.
class KnownGraph {
 public:
  using Launch = decltype(&cuGraphLaunch);

  KnownGraph(const gpu::Driver& driver, CUgraphExec exec, CUgraph clone, unsigned long long flags,
             std::string why_not);
  ~KnownGraph();
  KnownGraph(const KnownGraph&) = delete;
  KnownGraph& operator=(const KnownGraph&) = delete;

  /// Null: it runs as the program wrote it, and why_not() says why.
  [[nodiscard]] std::shared_ptr<const GraphNodes> nodes();
  [[nodiscard]] const std::string& why_not() const noexcept { return why_not_; }
  [[nodiscard]] bool was_changed() const noexcept { return changed_; }
  [[nodiscard]] CUgraph clone() const noexcept { return clone_; }
  [[nodiscard]] CUcontext context() const noexcept { return context_; }
  /// The flags of the program's own instantiation that matter to another one.
  [[nodiscard]] unsigned long long flags() const noexcept { return flags_; }
  /// "1a2b3c4d": the same for graphs of the same kernels in the same shapes.
  [[nodiscard]] std::string name();

  /// Launches that instantiation in place of the program's.
  /// @param may_change other instantiations will follow
  /// @param launched what it was: another one where only that keeps the order
  CUresult launch(Launch real, const GraphCall& call, CUgraphExec wanted, bool may_change,
                  CUgraphExec& launched) noexcept;

  /// Destroys all instantiations of ours.
  void drop_instances() noexcept;
  /// The program changed its instantiation: ours are outdated, but for a chained one that followed.
  void change() noexcept;
  /// It is as the program wrote it from now on.
  void drop_chained() noexcept;
  /// Keeps those chained instantiations, and destroys all others.
  void keep_chained(const std::function<bool(const ChainedGraph&)>& which) noexcept;
  void forget_stream(CUstream stream) noexcept { order_.forget_stream(stream); }

  std::mutex mutex;
  const CUgraphExec exec;
  GraphInstances instances;
  std::vector<std::unique_ptr<ChainedGraph>> chained;  ///< one for each set of ordinary kernels
  bool may_be_chained = true;
  std::map<const void*, std::unique_ptr<GraphInRegion>> regions;
  LaunchRegion* own_region = nullptr;  ///< of which its launches are the entries
  [[nodiscard]] CUgraphExec last() const noexcept { return order_.last(); }

 private:
  const gpu::Driver& driver_;
  CUgraph clone_;
  const unsigned long long flags_;
  CUcontext context_ = nullptr;
  std::string why_not_;
  std::string name_;
  bool changed_ = false;
  std::shared_ptr<const GraphNodes> nodes_;
  GraphOrder order_;
};

/// All graphs of the process. Any thread; nothing throws.
class GraphTable {
 public:
  GraphTable(const gpu::Driver& driver, const contextune_frontend* frontend,
             const std::atomic<bool>& stopped);

  // Calls that the program has made, told after they have succeeded.
  void instantiated(contextune_fn fn, void* const* args) noexcept;
  // Calls that it is about to make.
  void destroyed(CUgraphExec exec) noexcept;
  void forget_stream(CUstream stream) noexcept;
  /// @param gone what we made in it is gone, too, and must not be destroyed
  void forget_context(CUcontext context, bool gone) noexcept;

  /// Null: its instantiation was not seen.
  [[nodiscard]] std::shared_ptr<KnownGraph> find(CUgraphExec exec) noexcept;

  /// Launches the program's own instantiation.
  [[nodiscard]] CUresult as_written(const GraphCall& call) noexcept;

  /// Why a replay cannot launch it again with memory restored, in a sentence; empty: it can.
  [[nodiscard]] std::string unreplayable(CUgraphExec exec) noexcept;

  /// The driver's cuGraphLaunch of that form.
  [[nodiscard]] KnownGraph::Launch real(contextune_fn fn) const noexcept {
    return launch_[fn == contextune_fn_cuGraphLaunch_ptsz];
  }

 private:
  [[nodiscard]] std::string clone(CUgraph graph, unsigned long long flags, CUgraph& made) const;
  [[nodiscard]] std::vector<std::shared_ptr<KnownGraph>> all() noexcept;

  const gpu::Driver& driver_;
  const std::atomic<bool>& stopped_;
  KnownGraph::Launch launch_[2] = {nullptr, nullptr};  ///< second: _ptsz
  bool usable_ = false;
  std::atomic<bool> empty_{true};
  std::mutex mutex_;
  std::unordered_map<CUgraphExec, std::shared_ptr<KnownGraph>> graphs_;
  std::vector<std::shared_ptr<KnownGraph>> gone_;  ///< with their contexts
};

}  // namespace contextune::intercept
