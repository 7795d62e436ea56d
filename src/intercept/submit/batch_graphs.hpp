#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "gpu/driver/driver.hpp"
#include "intercept/submit/graph_memory.hpp"
#include "intercept/submit/launch_batch.hpp"

namespace contextune::intercept {

/// Executable graphs of batches, by the sequence of their kernels. They are built on a thread of
/// ours, once a sequence has come a second time, and the least used go when there are many.
///
/// Batches of one context at a time are handed over by one thread at a time; everything else may
/// be called from any thread.
class BatchGraphs {
 public:
  explicit BatchGraphs(const gpu::Driver& driver) : driver_(driver), memory_(driver) {}
  BatchGraphs(const BatchGraphs&) = delete;
  BatchGraphs& operator=(const BatchGraphs&) = delete;

  /// Whether this driver can do what is needed.
  [[nodiscard]] bool possible() const noexcept;

  /// A clause that says why no more graphs are built; null: they are.
  [[nodiscard]] const char* obstacle() const noexcept;

  /// A sentence with what the driver first said against a graph of a batch, which goes out singly
  /// then; once. Empty: nothing yet, or it was told.
  [[nodiscard]] std::string take_failure() noexcept;

  /// Launches the batch's graph with its arguments.
  /// @param is_whole no other batch is longer: it is worth a graph at once
  /// @return whether it did; false: nothing was launched, and the graph may be there later
  [[nodiscard]] bool launch(LaunchBatch& batch, CUcontext context, CUstream stream,
                            bool is_whole) noexcept;

  /// Destroys all graphs, after what is being built. Before modules or contexts go away.
  void clear() noexcept;
  /// No graph is built any more; waits, but not for long, for one that is.
  void stop() noexcept;

  struct Totals {
    std::uint64_t launches = 0;  ///< of graphs
    std::uint64_t kernels = 0;   ///< in them
    std::size_t built = 0;
    double build_seconds = 0;
    std::uint64_t bytes = 0;  ///< of device memory
  };
  [[nodiscard]] Totals totals() noexcept;

 private:
  /// Goes, with what the driver has of it, once nobody launches it any more.
  struct Graph {
    explicit Graph(const gpu::Driver& of) : driver(of) {}
    ~Graph();
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;

    const gpu::Driver& driver;
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    CUcontext context = nullptr;
    std::vector<CUgraphNode> nodes;
    LaunchBatch last;  ///< as the nodes are set
    std::uint64_t used = 0;
  };
  struct Wanted {
    LaunchBatch batch;
    CUcontext context = nullptr;
    std::uint64_t generation = 0;
  };
  static constexpr std::size_t most_graphs = 64;
  static constexpr std::size_t most_seen = 4096;

  void want(const LaunchBatch& batch, CUcontext context, bool at_once) noexcept;
  void work() noexcept;
  [[nodiscard]] std::shared_ptr<Graph> build(Wanted& wanted);  ///< throws
  void set_changed(Graph& graph, LaunchBatch& batch);          ///< throws
  void note_failure(const char* why) noexcept;                 ///< with the lock
  [[nodiscard]] static CUDA_KERNEL_NODE_PARAMS params_of(const LaunchBatch& batch, std::size_t i);
  /// @return the graph that has to go for another one, without the lock; null: there is room
  [[nodiscard]] std::shared_ptr<Graph> make_room() noexcept;

  const gpu::Driver& driver_;
  GraphMemory memory_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::unordered_map<std::uint64_t, std::shared_ptr<Graph>> graphs_;
  std::unordered_map<std::uint64_t, std::uint32_t> seen_;  ///< sequences without a graph
  std::deque<Wanted> wanted_;
  std::uint64_t clock_ = 0;
  std::uint64_t generation_ = 0;         ///< grows when all are destroyed
  std::atomic<bool> has_builder_{true};  ///< false: its thread could not be started
  std::atomic<bool> untold_{false};      ///< `failure_` is to be taken
  bool failed_ = false;
  std::string failure_;
  bool running_ = false;
  bool building_ = false;
  bool stopped_ = false;
  Totals totals_;
};

}  // namespace contextune::intercept
