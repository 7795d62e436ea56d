#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <contextune/contextune.h>
#include <contextune/autotune_options.hpp>
#include <contextune/config.hpp>
#include <contextune/device.hpp>
#include <contextune/launch_limits.hpp>
#include <contextune/problem_table.hpp>

namespace contextune {

/// The part of an autotuned function that does not depend on its callables. Any thread.
class AutotunedBase {
 public:
  [[nodiscard]] const std::string& name() const noexcept { return shared_->name; }
  [[nodiscard]] const AutotuneOptions& options() const noexcept { return shared_->options; }
  /// All configs, before any is pruned; empty while a space that depends on the device was not
  /// asked for.
  [[nodiscard]] const std::vector<Config>& configs() const noexcept { return shared_->configs; }

 protected:
  using Problem = detail::KnownProblem;

  /// Why configs do not run, by their number.
  using Reasons = std::vector<std::pair<std::uint32_t, std::string>>;

  /// The result of pruning the configs of one problem.
  struct Pruning {
    std::vector<std::uint32_t> kept;
    contextune_pruned pruned{};
    Reasons reasons;
  };

  AutotunedBase(std::string name, AutotuneOptions options);
  AutotunedBase(AutotunedBase&&) noexcept;
  AutotunedBase& operator=(AutotunedBase&&) noexcept;
  ~AutotunedBase();

  /// Takes the described configs.
  /// @param device for which they were made; null: for any
  /// @throws Error that names function and device if there is none, or two are equal
  void declare(std::vector<Config> configs, const Device* device);
  [[nodiscard]] bool is_declared() const noexcept {
    return shared_->tunable.load(std::memory_order_acquire) != nullptr;
  }
  [[noreturn]] void refuse(const std::string& what) const;

  // NOLINTNEXTLINE(bugprone-exception-escape): as ProblemTable::find
  [[nodiscard]] Problem* find(const detail::CallKey& key) const noexcept {
    return shared_->problems.find(key);
  }
  /// Nothing is kept of further problems.
  [[nodiscard]] bool is_full() const noexcept { return shared_->problems.is_full(); }
  /// The text of the Error that every call of a problem without configs throws.
  [[nodiscard]] std::string failure_of(const Key& key, const Pruning& pruning) const;
  /// A new problem; `kept` may be empty: every call of it fails.
  Problem& add(std::unique_ptr<Problem> problem, Pruning pruning);
  /// The problem without its default, which cannot run. It is not found before publish().
  /// @throws Error that names everything if no config is left, with what was thrown nested in it
  [[nodiscard]] std::unique_ptr<Problem> without_default(const Problem& problem,
                                                         const Reasons& failures,
                                                         std::exception_ptr thrown) const;
  Problem& publish(const Problem& old, std::unique_ptr<Problem> by);

  /// The config that the problem runs outside of regions; CONTEXTUNE_UNSETTLED: the slow path has
  /// to find out.
  [[nodiscard]] std::uint32_t settled(const Problem& problem) const noexcept {
    if (problem.number == Problem::untuned)
      return problem.kept.empty() ? CONTEXTUNE_UNSETTLED : problem.kept.front();
    // A problem that takes a near size's winner has none of its own, or near_as_of is out of date.
    const Problem* const near = problem.near.load(std::memory_order_acquire);
    if (near != nullptr && problem.near_as_of.load(std::memory_order_relaxed) ==
                               shared_->num_settled.load(std::memory_order_relaxed)) {
      const std::uint32_t theirs = contextune_tunable_settled(handle(), near->number);
      if (problem.keeps(theirs)) return theirs;
    }
    return contextune_tunable_settled(handle(), problem.number);
  }
  /// Looks for the nearest size with a winner; then settled() knows.
  /// @return whether there is one
  bool find_near(Problem& problem) const;
  /// A problem was tuned.
  void note_settled() noexcept { shared_->num_settled.fetch_add(1, std::memory_order_relaxed); }
  /// The config that the problem was settled on could not be launched: it is not run again.
  void drop(Problem& problem, std::uint32_t config) const noexcept;

  [[nodiscard]] contextune_tunable* handle() const noexcept {
    return shared_->tunable.load(std::memory_order_relaxed);
  }
  [[nodiscard]] RegionOptions region_options(void* communicator) const;
  /// `config` with those parameters set.
  /// @throws Error unless overriding is allowed and the config has all of them
  [[nodiscard]] Config override_of(const Config& config, const Config& set) const;
  /// The ranks of a communicator, as part of a key: empty: all of the job, or this one alone.
  /// @return false: they were not found, and `text` says why
  [[nodiscard]] static bool find_group(void* communicator, std::string& text);
  /// Where the ranks of the problem were not found: says so, as the call's contextune_error() too.
  void say_untuned(const Problem& problem, bool verbose) const;
  void say(const Problem& problem, const std::string& what) const;
  /// True: the caller is to measure the hints now, which nobody has yet.
  [[nodiscard]] bool claim_hints() noexcept;

  [[nodiscard]] std::mutex& mutex() const noexcept { return shared_->mutex; }

 private:
  /// Tells the library of a problem and what it keeps.
  void number(Problem& problem, const contextune_pruned& pruned) const;

  struct Shared {
    std::string name;
    AutotuneOptions options;
    std::vector<Config> configs;
    std::atomic<contextune_tunable*> tunable{nullptr};  ///< lives as long as the process
    detail::ProblemTable problems;
    std::atomic<std::uint64_t> num_settled{0};
    std::atomic<bool> hints_claimed{false};
    std::mutex mutex;
  };

  std::unique_ptr<Shared> shared_;
};

}  // namespace contextune
