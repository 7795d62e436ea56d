#pragma once

#include <string>

#include "core/value/fallback_reason.hpp"

namespace contextune::intercept {

/// Why the program's launches do not come to the frontend, read from the objects that are loaded.
struct LinkFault {
  FallbackReason reason = FallbackReason::LoadedLate;
  std::string sentence;  ///< which object lacks what, and what to do
};

/// Only where the frontend has not attached this library.
[[nodiscard]] LinkFault find_link_fault();

/// The frontend is in this process, linked or preloaded.
[[nodiscard]] bool has_frontend() noexcept;

/// The frontend is in this process behind the driver: what the program calls by name passes it by.
[[nodiscard]] bool driver_comes_first() noexcept;

}  // namespace contextune::intercept
