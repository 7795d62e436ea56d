#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <contextune/contextune.h>

#include "api/function/function_record.hpp"

namespace contextune::api {

/// One call of a function, on one thread. Throws std::bad_alloc, Error, Left and ThreadEnds only.
class FunctionCall {
 public:
  /// A callback has left the call, or what it returned is the call's.
  struct Left {
    int status = CONTEXTUNE_FUNCTION_LEFT;
  };

  FunctionCall(contextune_function& function, const contextune_function_run& given)
      : function_(function), given_(given) {}

  /// As contextune_function_call().
  [[nodiscard]] int run(std::uint32_t number);
  /// As contextune_function_tune().
  [[nodiscard]] int tune(std::uint32_t number);
  /// The config that was settled on could not be run.
  static void drop(const contextune_function& function, FunctionProblem& problem,
                   std::uint32_t config) noexcept;

 private:
  /// Why configs do not run, by their number.
  using Reasons = std::vector<std::pair<std::uint32_t, std::string>>;
  struct Pruning {
    std::vector<std::uint32_t> kept;
    contextune_pruned pruned{};
    Reasons reasons;
  };
  /// What is found out in one entry of the problem's own region.
  struct Trials {
    bool default_ran = false;
    bool default_failed = false;  ///< before anything was measured
    Reasons reasons;
  };

  /// Everything that comes before a problem can be looked at.
  /// @return false: nothing is known of the device that the configs depend on
  [[nodiscard]] bool list_configs();
  [[nodiscard]] int run_unlisted();
  void measure_hints();
  [[nodiscard]] int prune(std::uint32_t config);
  [[nodiscard]] Pruning prune_all(std::uint32_t num_configs);
  /// @throws Error if no config can run
  [[nodiscard]] const FunctionWays& ways_of(FunctionProblem& problem);

  /// Runs a config, and keeps why it failed.
  [[nodiscard]] int run_config(std::uint32_t config, bool counts);
  [[nodiscard]] int run_settled(FunctionProblem& problem, const FunctionWays& ways,
                                std::uint32_t config);
  [[nodiscard]] int run_override(const FunctionProblem& problem, std::uint32_t base);
  [[nodiscard]] int run_unsettled(FunctionProblem& problem, const FunctionWays& ways);
  /// A call of the tunable, in the region around it or in the problem's own.
  /// @param trials null: it is not the problem's own region
  [[nodiscard]] int run_in_region(const FunctionWays& ways, bool counts, Trials* trials,
                                  const FunctionProblem* to_say);
  [[nodiscard]] int attempt(const FunctionWays& ways, std::uint32_t config, bool counts,
                            Trials* trials);
  /// The last run's status.
  [[nodiscard]] int tune_now(FunctionProblem& problem);
  /// One entry of the problem's own region.
  [[nodiscard]] int run_region(FunctionProblem& problem, const FunctionWays& ways, Trials& trials,
                               bool& is_disagreed);
  void set_up(contextune_entry& entry, const FunctionProblem& problem);
  /// The ways without the default, which cannot run.
  /// @throws Error if no config is left
  [[nodiscard]] std::unique_ptr<FunctionWays> without_default(const FunctionProblem& problem,
                                                              const FunctionWays& ways,
                                                              const Reasons& reasons) const;
  [[nodiscard]] std::string failure_of(const Key& key, const Reasons& reasons) const;

  void say(const FunctionProblem& problem, const std::string& what) const;
  void say_run(const FunctionProblem& problem, std::uint32_t config) const;
  void say_untuned(const FunctionProblem& problem) const;
  void say_settled(const FunctionProblem& problem) const;

  contextune_function& function_;
  const contextune_function_run& given_;
};

}  // namespace contextune::api
