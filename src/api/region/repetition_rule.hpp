#pragma once

#include "core/trials/store.hpp"

namespace contextune::api {

/// Whether work may be run several times for the program's one call.
enum class Repetition {
  Said,    ///< its author says that it leaves the same, or how it is undone
  ToShow,  ///< nobody says so: two runs of its default have to be seen to leave the same
  Never    ///< nobody says so: it runs once, as what it is
};

/// The one rule for regions, functions and choices. A region is itself work of the program, and a
/// choice has implementations that nobody has compared yet: both run once where nothing is said. A
/// function is called to be repeated, so its default shows whether it may be.
/// @param leaves_the_same `repeatable`, or inputs that its author has made for it
/// @param is_undone       `restore`, or the `buffers` of a choice
[[nodiscard]] constexpr Repetition repetition_of(StoredKind kind, bool leaves_the_same,
                                                 bool is_undone) noexcept {
  if (leaves_the_same || is_undone) return Repetition::Said;
  return kind == StoredKind::Function ? Repetition::ToShow : Repetition::Never;
}

}  // namespace contextune::api
