#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include <contextune/contextune.h>
#include <contextune/config.hpp>
#include <contextune/key.hpp>

#include "api/tunable/numbered_problems.hpp"
#include "api/tunable/problem_sites.hpp"
#include "core/trials/pruned_configs.hpp"

namespace contextune::api {

/// Which configs a problem may run, and how many others there are. Written once.
struct KeptConfigs {
  std::vector<std::uint32_t> configs;  ///< of the tunable; the first is the default
  PrunedConfigs pruned;
};

/// A problem of a tunable and the sites that it has become.
struct TunableProblem {
  Key key;  ///< with the group
  std::string text;
  std::string group;  ///< ranks that do it together, as text_of_ranks(); empty: nobody was named
  std::atomic<const KeptConfigs*> kept{nullptr};  ///< null: all
  ProblemSites sites;
  std::atomic<bool> refused{false};       ///< it cannot have a region of its own
  std::atomic<std::uint32_t> foreign{0};  ///< its number in another copy, plus one

  /// The tunable's number of a config that its sites number by themselves.
  [[nodiscard]] std::uint32_t outer(std::uint32_t config) const noexcept {
    const KeptConfigs* only = kept.load(std::memory_order_acquire);
    if (only == nullptr) return config;
    return only->configs[config < only->configs.size() ? config : 0];
  }
  [[nodiscard]] std::size_t num_configs(std::size_t of_tunable) const noexcept {
    const KeptConfigs* only = kept.load(std::memory_order_acquire);
    return only == nullptr ? of_tunable : only->configs.size();
  }
};

}  // namespace contextune::api

/// A tunable as the C functions know it. Never destroyed; any thread.
struct contextune_tunable {
  std::string name;       ///< as given
  std::string site_name;  ///< told apart from tunables of that name with other configs
  std::string build;      ///< of the program file that made it; empty: not known
  std::vector<std::string> config_texts;
  std::vector<contextune::Config> configs;
  std::atomic<int> n_warmup{-1};
  std::atomic<int> n_repeat{-1};
  std::atomic<bool> timed_as_span{false};

  std::atomic<contextune_tunable*> foreign{nullptr};  ///< the same in another copy of the library

  using Problems = contextune::api::NumberedProblems<contextune::api::TunableProblem, 16>;

  /// Null beyond the last. Without a lock.
  [[nodiscard]] contextune::api::TunableProblem* problem(std::uint32_t number) const noexcept {
    return problems_.at(number);
  }

  /// The number of a problem, new or not; Problems::none when there are too many.
  /// @param group as TunableProblem has it
  /// @throws Error if its key cannot be read
  [[nodiscard]] std::uint32_t number_of(const std::string& key_text, const std::string& group = {});

  /// Of the code that its calls run; empty: its author gave none.
  void set_version(std::string version);
  [[nodiscard]] std::string version() const;

  /// "gemm{n=4096}", "gemm{}" without a key: the region in which a problem is tuned by itself. A
  /// region that the program calls "gemm" is another one.
  [[nodiscard]] std::string region_name(const contextune::api::TunableProblem& problem) const {
    return site_name + "{" + problem.key.to_string() + "}";
  }

 private:
  mutable std::mutex mutex_;
  std::string version_;
  Problems problems_;
};
