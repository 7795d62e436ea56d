#pragma once

#include <cstdint>
#include <optional>

#include "api/choice/choice_record.hpp"
#include "api/failure_text.hpp"
#include "api/program_call.hpp"
#include "intercept/runtime/runtime.hpp"

namespace contextune::api {

// Nothing but ThreadEnds is thrown, where the calling thread ends in an implementation.

/// Does a call whose problem is not settled, in the region around it: what its search wants, or has
/// found. Absent: there is no such region, or it must not be searched there.
/// @param times it is done in a row, and timed as a whole
[[nodiscard]] std::optional<int> call_in_region(contextune_choice& choice, ChoiceProblem& problem,
                                                intercept::Region* region,
                                                const contextune_choice_run& call, int times = 1);

/// Finds out, once, which candidates are wrong. False: the problem runs its default, on all ranks.
/// @param only that candidate is looked at; null: all
[[nodiscard]] bool screen(contextune_choice& choice, ChoiceProblem& problem,
                          intercept::Runtime& runtime, const contextune_choice_run& run,
                          intercept::Region* region, const ChoiceCandidate* only = nullptr);

/// Measures a problem alone, in a region of its own whose body is `run`, and settles it.
/// @return what the last run returned, which leaves its result
[[nodiscard]] int measure_alone(contextune_choice& choice, ChoiceProblem& problem,
                                intercept::Runtime& runtime, const contextune_choice_run& run);

/// Whether `run` may be repeated.
[[nodiscard]] bool may_repeat(const contextune_choice& choice, const contextune_choice_run& run,
                              bool is_own) noexcept;

/// Runs a candidate, or the default, from a function that has nothing to destroy: the thread may
/// end in it.
[[nodiscard]] inline int run_at_once(const ChoiceProblem& problem, std::uint32_t number,
                                     const contextune_choice_run& call) {
  static_cast<void>(take_failure());  // of something before
  if (number == ChoiceProblem::by_default) return call.run(call.user, 0, 0);
  const ChoiceCandidate& one = problem.candidates[number];
  return call.run(call.user, one.implementation, one.config);
}
/// The same, from any.
/// @throws ThreadEnds
[[nodiscard]] inline int run_candidate(const ChoiceProblem& problem, std::uint32_t number,
                                       const contextune_choice_run& call) {
  return call_program([&] { return run_at_once(problem, number, call); });
}

}  // namespace contextune::api
