#pragma once

#include <string>
#include <utility>

#include "intercept/recording/recording.hpp"

namespace contextune::intercept {

/// An obstacle to repeating a visit, as an exception from wherever it is found.
struct Declined {
  Recording::Obstacle obstacle;
};

/// @param text empty: the sentence of the reason
/// @param retry another visit of the region may go better
[[noreturn]] inline void decline_for(FallbackReason reason, std::string text, bool retry = false) {
  throw Declined{{reason, std::move(text), retry}};
}

}  // namespace contextune::intercept
