#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <contextune/contextune.h>
#include <contextune/buckets.hpp>
#include <contextune/config.hpp>
#include <contextune/key.hpp>

#include "api/tunable/numbered_problems.hpp"
#include "api/tunable/problem_sites.hpp"
#include "core/coordination/lockstep.hpp"
#include "core/value/result_tolerance.hpp"
#include "intercept/ranks/rank_group.hpp"
#include "intercept/runtime/runtime.hpp"

namespace contextune::api {

/// An implementation of a choice as its author added it.
struct Implementation {
  std::string name;
  std::vector<Config> configs;  ///< of its own; never empty
  contextune_fusion fusion = contextune_fusion_auto;
  void* user = nullptr;
  int (*supports)(void* user, const contextune_problem* problem) = nullptr;
  void (*abandon)(void* user) = nullptr;
  std::string version;  ///< of its code; empty: none was given
};

/// A way to do a problem.
struct ChoiceCandidate {
  enum class State : std::uint8_t { Open, Wrong, Failed, Uncompared };
  std::uint32_t implementation = 0;
  std::uint32_t config = 0;
  [[nodiscard]] bool is_default() const noexcept { return implementation == 0 && config == 0; }
  Config full;  ///< "implementation=ring chunk=65536"
  State state = State::Open;
  bool is_right = false;  ///< it was compared with the default at this size, and may run
};

/// A problem of a choice, on one device: what is right and fast on one need not be on another. The
/// candidates that it may run are written once, under the choice's mutex, before `stage` says so;
/// then any thread reads them.
struct ChoiceProblem {
  enum class Stage : std::uint8_t {
    New,      ///< nothing was looked at yet
    Screened  ///< wrong and failed ones are known; what is left is searched in regions
  };
  /// In `settled`: it has to be searched, or is.
  static constexpr std::uint32_t unsettled = 0xffffffffU;
  /// As well: the default, which is not always a candidate.
  static constexpr std::uint32_t by_default = 0xfffffffeU;

  std::optional<SizeBucket> bytes;  ///< that it stands for; absent: it has no size
  std::string type;
  int ranks = 1;
  std::string key_text;
  Key key;            ///< with the size
  std::string label;  ///< "all_reduce{bytes=32769-65536}"
  /// The members below are there. They wait for CUDA: before, nobody knows what the operator says
  /// of the problem.
  std::atomic<bool> is_ready{false};
  /// The candidates of the search. Number 0 is the default, unless that is ruled out.
  std::vector<ChoiceCandidate> candidates;
  std::vector<std::uint32_t> unsupported;  ///< implementations
  std::atomic<Stage> stage{Stage::New};
  /// The candidate that is run wherever it is called, from now on.
  std::atomic<std::uint32_t> settled{unsettled};
  /// The candidate that is run outside of regions while it has no winner of its own, because a near
  /// size runs it. It was looked for when the choice's num_settled was `borrowed_as_of`.
  std::atomic<std::uint32_t> borrowed{unsettled};
  std::atomic<std::uint32_t> borrowed_as_of{0};
  ProblemSites sites;
  /// Where it is done; -1: nowhere yet, or by several ranks, each on a device of its own.
  std::atomic<int> on_device{-1};
  std::atomic<ChoiceProblem*> elsewhere{nullptr};  ///< the same on the next device

  /// The same on that device; null: it was not called for there. The first device has the first.
  [[nodiscard]] ChoiceProblem* on(int device) noexcept;
};

}  // namespace contextune::api

/// A choice as the C functions know it. Never destroyed; any thread.
struct contextune_choice {
  std::string name;       ///< as given
  std::string site_name;  ///< told apart from choices of that name with other implementations
  std::string build;      ///< of the program file that made it; empty: not known
  /// As its author gave them; from its first problem that is ready on, as the operator wants them.
  contextune_choice_options options{};
  std::string version;      ///< of the code of all of it; empty: none was given
  std::string declaration;  ///< of its versions, as StoredSite has it; by close()
  std::string only;  ///< names of the implementations that may run, separated by commas; empty: all
  contextune::ResultTolerance tolerance;
  contextune::Buckets buckets;
  std::vector<contextune::api::Implementation> implementations;
  std::atomic<bool> called{false};  ///< nothing is added any more
  std::once_flag closing;

  /// Allows one search at a time; taken by the thread that screens or measures.
  std::mutex search_mutex;
  std::vector<std::uint32_t> named_ranks;  ///< by its author; empty: as the options say
  /// The ranks of the job that do it, and meetings with them; found and made when first needed.
  contextune::intercept::RankGroup group;
  std::string meetings;  ///< what they are called
  std::unique_ptr<contextune::Lockstep> ranks;
  /// The ranks have not met, so every problem that is not settled runs its default.
  std::atomic<bool> is_apart{false};
  /// Another copy of the library runs in this process, and was told of this choice.
  std::atomic<bool> is_foreign{false};
  /// Problems that were measured alone.
  std::atomic<std::uint32_t> num_settled{0};

  /// Nothing is added from now on: what it is called in logs.
  void close();

  [[nodiscard]] bool is_shared() const noexcept { return options.ranks > 1; }

  /// The key of a problem's sites, once its ranks are known. Ranks that are not the whole job are
  /// part of it, because other groups may do the same problem.
  [[nodiscard]] contextune::Key site_key(const contextune::api::ChoiceProblem& problem) const;

  /// As the current device has it; null beyond the last, while nothing is tuned in this copy of the
  /// library, and without memory for it. Without a lock, but for the first time on a device.
  [[nodiscard]] contextune::api::ChoiceProblem* problem(std::uint32_t number) noexcept;
  /// Whether that is the number of a problem, which problem() may not have yet.
  [[nodiscard]] bool knows(std::uint32_t number) const noexcept { return first(number) != nullptr; }
  /// The number of a problem, new or not; Problems::none when there are too many.
  /// @param problem of the form that contextune_problem has now
  /// @throws Error if its key cannot be read
  [[nodiscard]] std::uint32_t number_of(const contextune_problem& problem);

  /// Those that differ from it in their size only, on its device. Takes the lock.
  [[nodiscard]] std::vector<contextune::api::ChoiceProblem*> of_other_sizes(
      const contextune::api::ChoiceProblem& problem);

  using Problems = contextune::api::NumberedProblems<contextune::api::ChoiceProblem, 14>;

 private:
  /// On the device that it was first called on.
  [[nodiscard]] contextune::api::ChoiceProblem* first(std::uint32_t number) const noexcept {
    return problems_.at(number);
  }
  [[nodiscard]] contextune::api::ChoiceProblem* make_on(contextune::api::ChoiceProblem& first,
                                                        int device) noexcept;
  void say_if_foreign() noexcept;
  /// Under mutex_.
  void make_ready(contextune::api::ChoiceProblem& problem, contextune::intercept::Runtime& runtime);
  void find_candidates(contextune::api::ChoiceProblem& problem) const;
  /// Whether the options and the operator let it run.
  [[nodiscard]] bool is_wanted(const contextune::api::Implementation& implementation) const;
  /// The operator's wishes, from options and from space files.
  void read_options(contextune::intercept::Runtime& runtime);
  void read_rule(contextune::intercept::Runtime& runtime);
  [[nodiscard]] static bool can_do(const contextune::api::Implementation& implementation,
                                   const contextune::api::ChoiceProblem& problem);

  std::string pin_;  ///< by the operator; empty: none
  std::vector<std::string> exclude_;
  std::vector<std::string> only_;  ///< names of its own; empty: all may run
  bool knows_operator_ = false;
  std::mutex mutex_;
  Problems problems_;
};
