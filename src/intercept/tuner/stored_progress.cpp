#include "intercept/tuner/stored_progress.hpp"

#include <algorithm>
#include <utility>

#include "intercept/host/clock.hpp"

namespace contextune::intercept {
namespace {

// For what was found out to be safely written while the program runs on: a few milliseconds, but
// for a disk that is busy.
constexpr double most_noting_seconds = 0.1;

}  // namespace

bool StoredProgress::enters(Stage stage) noexcept {
  return std::exchange(stage_, stage) != stage && next_ != 0;
}

void StoredProgress::keep(double now, bool at_once) {
  constexpr double least_period_seconds = 0.1;
  constexpr double least_times_its_cost = 100;
  const bool is_due = next_ != 0 && now >= next_;
  if (!is_due && next_ != 0 && !at_once) return;
  const double begin = now_seconds();
  if (is_due || at_once) results_.save_so_far();
  const double cost = now_seconds() - begin;
  next_ = now + std::max(least_period_seconds, least_times_its_cost * cost);
}

void StoredProgress::await_saved() {
  if (saving_.exchange(false)) store_.wait(ProcessStore::most_saving_seconds);
}

void StoredProgress::await_notes() {
  if (!notes_.load(std::memory_order_relaxed)) return;
  if (notes_.exchange(false, std::memory_order_relaxed)) store_.wait(most_noting_seconds);
}

void StoredProgress::await_all() {
  store_.wait(most_noting_seconds);
}

}  // namespace contextune::intercept
