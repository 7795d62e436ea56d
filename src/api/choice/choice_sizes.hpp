#pragma once

#include <cstdint>
#include <optional>

#include "api/choice/choice_record.hpp"
#include "intercept/runtime/runtime.hpp"

namespace contextune::api {

// The candidate that a problem not measured at its own size runs outside of regions, where the
// choice's author has said something of such sizes.

/// The candidate that it runs, as far as that was found out. Absent: it has to be looked for, or
/// searched. Takes no lock.
[[nodiscard]] std::optional<std::uint32_t> known_of_other_size(
    const contextune_choice& choice, const ChoiceProblem& problem) noexcept;

/// Looks for the nearest size with a winner that this one can run and that is right here too; then
/// known_of_other_size() has it. By whoever has the search.
/// @return whether there is one
[[nodiscard]] bool borrow_winner(contextune_choice& choice, ChoiceProblem& problem,
                                 intercept::Runtime& runtime, const contextune_choice_run& run);

/// The borrowed winner could not be run: the problem runs its default from now on, until it is
/// measured.
void drop_borrowed(ChoiceProblem& problem) noexcept;

}  // namespace contextune::api
