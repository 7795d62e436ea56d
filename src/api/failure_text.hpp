#pragma once

#include <string>
#include <string_view>

namespace contextune::api {

/// Keeps why what this thread is running fails, until somebody takes it: the text of an exception
/// that does not leave the program's own code. Null or empty: nothing is known.
void note_failure(const char* text) noexcept;

/// Gives the kept text and forgets it. "" if there is none.
[[nodiscard]] std::string_view take_failure() noexcept;

/// ": text" of what was kept, else "". @throws std::bad_alloc
[[nodiscard]] std::string taken_failure_clause();

}  // namespace contextune::api
