#pragma once

#include "api/api_table.h"

namespace contextune::api {

/// The work of the C functions on choices. Nothing throws; a failure leaves its text in
/// last_error().
/// @param caller code of the program file that has it
[[nodiscard]] contextune_choice* create_choice(const char* name,
                                               const contextune_choice_options* options,
                                               const void* caller) noexcept;
[[nodiscard]] int add_implementation(contextune_choice* choice,
                                     const contextune_implementation* given) noexcept;
[[nodiscard]] uint32_t choice_problem(contextune_choice* choice,
                                      const contextune_problem* problem) noexcept;
[[nodiscard]] int call_choice(contextune_choice* choice, uint32_t problem,
                              const contextune_choice_run* call,
                              const contextune_choice_run* alone) noexcept;
[[nodiscard]] contextune_choice_want choice_wants(contextune_choice* choice,
                                                  uint32_t problem) noexcept;
[[nodiscard]] int measure_choice(contextune_choice* choice, uint32_t problem,
                                 const contextune_choice_run* alone) noexcept;
/// Says in the log that a choice of another copy of this library runs its default, and which copy.
void say_runs_default(const char* choice, const char* file) noexcept;
/// Says why nothing is known of a problem that contextune_choice::problem() does not have.
/// @return -1
int fail_unready(const contextune_choice* choice, uint32_t problem) noexcept;
[[nodiscard]] size_t choice_timings(contextune_choice* choice, uint32_t problem,
                                    contextune_timing* timings, size_t most) noexcept;

}  // namespace contextune::api
