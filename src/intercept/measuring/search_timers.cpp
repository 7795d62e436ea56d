#include "intercept/measuring/search_timers.hpp"

namespace contextune::intercept {
namespace {

// For passes to be compared without CUPTI: to look whether it can leave takes up to 0.1 ms.
constexpr int most_release_tries = 8;

}  // namespace

Measure SearchTimers::measure(Measure planned) const noexcept {
  if (planned == Measure::Span && clock_ == RegionClock::Work) return Measure::Activity;
  const bool by_entry = clock_ == RegionClock::EntryOnly || clock_ == RegionClock::Row;
  if (planned == Measure::Activity && by_entry) return Measure::Span;
  return planned;
}

bool SearchTimers::want(bool wanted) {
  const bool can_measure = measurement_.want(id_, wanted);
  if (wanted && can_measure) release_tries_ = 0;
  return can_measure;
}

void SearchTimers::compare_without_cupti() {
  if (release_tries_ >= most_release_tries) return;
  release_tries_ = measurement_.cupti().release_early() ? most_release_tries : release_tries_ + 1;
}

void SearchTimers::end() {
  if (id_ != 0) (void)want(false);
  measurement_.cupti().release();
}

}  // namespace contextune::intercept
