#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "intercept/graphs/graph_table.hpp"
#include "intercept/submit/submitted_kernels.hpp"

namespace contextune::intercept {

/// How the program's graphs are launched: as written, or chained.
///
/// Both instantiations of a graph are kept in step, and launches of it stay one after the other,
/// whichever of the two they launch. Any thread; nothing throws.
class ChainedGraphs {
 public:
  enum class Use {
    Never,    ///< as written, and it stays so
    Perhaps,  ///< as written for the time being
    Now
  };
  struct Totals {
    std::uint64_t graphs = 0;     ///< that were instantiated once more
    std::uint64_t edges = 0;      ///< programmatic ones in them
    std::uint64_t launches = 0;   ///< of those
    std::uint64_t disturbed = 0;  ///< launches that should have been chained and were not
    std::uint64_t attempts = 0;   ///< to instantiate one
    double seconds = 0;           ///< they took
    std::uint64_t bytes = 0;      ///< of device memory
  };

  /// Told why a graph stays as written, or is so from now on.
  using Left = std::function<void(const std::string& sentence)>;

  /// @param seconds that may still be spent
  ChainedGraphs(const gpu::Driver& driver, SubmittedKernels& kernels, GraphTable& graphs,
                std::function<double()> seconds, Left left);

  /// From the next launch on.
  /// @param ordinary kernels that are not chained, as Submission has them
  void use(Use use, std::uint32_t ordinary = 0) noexcept;

  /// Instantiations in which other kernels are ordinary are not needed any more.
  void use_no_other() noexcept { before_.store(ordinary_.load(std::memory_order_relaxed)); }

  /// A launch by the program, which belongs to no region.
  [[nodiscard]] CUresult launch(const GraphCall& call) noexcept;

  /// The program has changed its instantiation, failed to update it, or uploaded it; the arguments
  /// are as the frontend shows them.
  void changed(contextune_fn fn, void* const* args) noexcept;
  void update_failed(CUgraphExec exec) noexcept;
  void uploaded(contextune_fn fn, void* const* args) noexcept;

  [[nodiscard]] Totals totals() const noexcept;

 private:
  /// Null: there is none for the kernels that are to stay ordinary now.
  [[nodiscard]] ChainedGraph* wanted(const KnownGraph& graph) const noexcept;
  ChainedGraph* build(KnownGraph& graph, CUgraph from, bool clone_of_program) noexcept;
  /// Drops all instantiations whose kernels are not compared any more.
  void drop_others(KnownGraph& graph) noexcept;
  void follow(KnownGraph& graph, contextune_fn fn, void* const* args) noexcept;
  void drop(KnownGraph& graph, const char* why) noexcept;

  const gpu::Driver& driver_;
  SubmittedKernels& kernels_;
  GraphTable& graphs_;
  GraphMemory memory_;
  const std::function<double()> seconds_;
  const Left left_;
  const bool possible_;
  std::atomic<Use> use_{Use::Never};
  std::atomic<std::uint32_t> ordinary_{0};
  std::atomic<std::uint32_t> before_{0};  ///< what it was: both are compared in turn
  std::atomic<std::uint64_t> built_{0};
  std::atomic<std::uint64_t> edges_{0};
  std::atomic<std::uint64_t> launches_{0};
  std::atomic<std::uint64_t> disturbed_{0};
  std::atomic<std::uint64_t> attempts_{0};
  std::atomic<std::uint64_t> spent_ns_{0};
};

}  // namespace contextune::intercept
