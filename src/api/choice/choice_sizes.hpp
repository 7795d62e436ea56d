#pragma once

#include <cstdint>
#include <optional>

#include "api/choice/choice_record.hpp"
#include "intercept/runtime/runtime.hpp"

namespace contextune::api {

// What a problem runs outside of regions that was not measured at its own size, where the choice's
// author has said something of such sizes.

/// What it runs as far as that was found out. Absent: it has to be looked for, or searched. Takes
/// no lock.
[[nodiscard]] std::optional<std::uint32_t> known_of_other_size(
    const contextune_choice& choice, const ChoiceProblem& problem) noexcept;

/// Looks for the nearest size with a winner that this one can run and that is right here too; then
/// known_of_other_size() has it. By whoever has the search.
/// @return whether there is one
[[nodiscard]] bool borrow_winner(contextune_choice& choice, ChoiceProblem& problem,
                                 intercept::Runtime& runtime, const contextune_choice_run& run);

/// What was borrowed could not be run: it is the default from now on, until it is measured.
void drop_borrowed(ChoiceProblem& problem) noexcept;

}  // namespace contextune::api
