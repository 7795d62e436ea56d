#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <contextune/contextune.h>
#include <contextune/buckets.hpp>
#include <contextune/config.hpp>
#include <contextune/key.hpp>

#include "api/tunable/numbered_problems.hpp"

namespace contextune::api {

/// The configs that a problem of a function may run. Written before it is published.
struct FunctionWays {
  std::vector<std::uint32_t> kept;            ///< the default first; empty: `failure` says why
  std::uint32_t number = CONTEXTUNE_UNTUNED;  ///< of the tunable's problem; no number: the default
  std::uint32_t num_failed = 0;               ///< defaults that could not run before the one of now
  std::string failure;                        ///< of every call

  [[nodiscard]] bool keeps(std::uint32_t config) const noexcept;
};

/// A problem of a function.
struct FunctionProblem {
  Key key;                            ///< with the size bucket
  std::string family;                 ///< the same for problems that differ in their size only
  std::optional<std::uint64_t> size;  ///< that stands for its bucket
  void* communicator = nullptr;       ///< whose ranks do it
  std::string group;                  ///< ranks that do it, by name
  // Written before `ways`:
  std::string found_group;  ///< ranks of the communicator, where they are not the whole job
  std::string why_untuned;  ///< the ranks were not found, a sentence
  /// Null: not called yet. Then what counts now.
  std::atomic<const FunctionWays*> ways{nullptr};
  std::vector<std::unique_ptr<const FunctionWays>> all_ways;  ///< also those that count no more

  /// The problem whose winner this one runs, while it has none of its own; looked for when the
  /// function's num_settled was `near_as_of`.
  std::atomic<const FunctionProblem*> near{nullptr};
  std::atomic<std::uint64_t> near_as_of{0};
  std::atomic<bool> takes_near{true};  ///< false: what was near could not be launched here
  /// Its ranks did not agree when it was to be tuned.
  std::atomic<bool> is_disagreed{false};
};

}  // namespace contextune::api

/// A function as the C functions know it. Any thread.
struct contextune_function {
  std::string name;
  std::string version;
  int n_warmup = 5;
  int n_repeat = 10;
  bool repeatable = false;
  contextune::Buckets buckets;
  contextune_unseen unseen = contextune_unseen_tune;
  std::uint32_t nearest_within = 4;
  std::vector<std::uint64_t> hints;
  bool allow_override = false;
  const void* caller = nullptr;  ///< code of the program file that made it

  std::vector<contextune::Config> configs;  ///< written before `tunable` is
  std::atomic<contextune_tunable*> tunable{nullptr};
  std::atomic<std::uint64_t> num_settled{0};
  std::atomic<bool> hints_claimed{false};

  using Problem = contextune::api::FunctionProblem;
  using Ways = contextune::api::FunctionWays;
  using Problems = contextune::api::NumberedProblems<Problem, 14>;
  static_assert(Problems::none == CONTEXTUNE_UNTUNED);
  /// Null beyond the last. Without a lock.
  [[nodiscard]] Problem* problem(std::uint32_t number) const noexcept {
    return problems_.at(number);
  }
  /// The number of a problem, new or not; Problems::none when there are too many.
  /// @param key of the form that contextune_function_key has now
  /// @throws Error if its key or its group cannot be read
  [[nodiscard]] std::uint32_t number_of(const contextune_function_key& key);

  /// Takes these configs, once.
  /// @param where " on NVIDIA H200"; empty: on any device
  /// @throws Error that names the function if there is none, or two are equal
  void declare(const std::vector<std::string>& texts, const std::string& where);
  /// Held by whoever declares configs that were listed.
  [[nodiscard]] std::mutex& listing() noexcept { return listing_; }

  /// Tells the tunable of what is kept of a problem.
  void number(const Problem& problem, Ways& ways, const contextune_pruned& pruned) const;
  /// The first ways that a problem has, unless another thread was faster.
  const Ways& publish_first(Problem& problem, std::unique_ptr<Ways> ways, std::string group,
                            std::string why_untuned, const contextune_pruned& pruned);
  /// Ways that take the place of others.
  void publish(Problem& problem, std::unique_ptr<const Ways> ways);

  /// The config that a problem runs outside of regions.
  [[nodiscard]] std::uint32_t settled(const Problem& problem) const noexcept;
  /// Looks for the nearest size with a winner; then settled() knows.
  /// @return whether there is one
  bool find_near(Problem& problem, const Ways& ways) const;

  /// "gemm{n=4096}", once it has ways.
  [[nodiscard]] std::string label(const Problem& problem) const;
  /// "function 'gemm': what".
  [[nodiscard]] std::string about(const std::string& what) const {
    return "function '" + name + "': " + what;
  }

 private:
  mutable std::mutex mutex_;
  std::mutex listing_;
  Problems problems_;
};
