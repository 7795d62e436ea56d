#include "intercept/tuner/search_end.hpp"

namespace contextune::intercept {
namespace {

// Entries after the end that are watched for a site that was first seen late to come again.
constexpr int most_idle_entries = 64;

}  // namespace

bool SearchEnd::has_come(bool tuning_is_finished, std::size_t num_sites) noexcept {
  if (!stopped_ && !tuning_is_finished) {
    go_on();
    idle_entries_ = 0;
    return false;
  }
  // A search that has nothing to do yet may get sites in the entries to come.
  const bool may_get_more = !stopped_ && (num_sites == 0 || num_sites != sites_when_finished_);
  if (may_get_more && (num_sites == 0 || ever_finished_) && ++idle_entries_ < most_idle_entries) {
    return false;
  }
  sites_when_finished_ = num_sites;
  idle_entries_ = 0;
  ever_finished_ = true;
  return true;
}

}  // namespace contextune::intercept
