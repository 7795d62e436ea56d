#include "intercept/measuring/entry_probe.hpp"

#include <cmath>
#include <utility>

namespace contextune::intercept {

bool EntryProbe::begin(PassId pass, bool is_all, bool expects) {
  if (probe_ || (winners_.empty() && (has_probed_ || !expects))) return false;
  has_probed_ = true;
  probe_ = Probe{pass, is_all, true, {}};
  return true;
}

bool EntryProbe::end(bool has_span) {
  if (!is_open()) return false;
  const bool is_all = probe_->is_all;
  probe_->open = false;
  probe_->used = winners_;
  if (!has_span) probe_.reset();
  return is_all;
}

bool EntryProbe::close(PassId pass, double seconds, Trials& survived) {
  if (!probe_ || probe_->pass != pass) return false;
  survived = std::isfinite(seconds) ? std::move(probe_->used) : Trials{};
  probe_.reset();
  return true;
}

}  // namespace contextune::intercept
