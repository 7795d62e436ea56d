#include "core/agreement/agreement_backoff.hpp"

#include <algorithm>
#include <utility>

namespace contextune {
namespace {

// After each of so many refusals in a row a rank asks again, with twice the margin. Where entries
// are short, all of these pass before another rank has started. A rank that was overtaken therefore
// also goes on asking for as long as it may be kept waiting.
constexpr int most_refusals = 12;
// The same once there are winners, when the question may concern this rank alone.
constexpr int most_late_refusals = 4;
constexpr std::uint64_t first_margin = 4;
constexpr std::uint64_t most_margin = 4096;
constexpr std::uint64_t most_pause = 1024;

}  // namespace

void AgreementBackoff::agree(std::uint64_t entry) {
  refusals_ = 0;
  // Less room where the answer came at once, and no more than that.
  if (4 * (entry - asked_entry_) < margin_) margin_ = std::max(first_margin, margin_ / 2);
}

void AgreementBackoff::pace(bool has_passes, std::uint64_t entry) {
  rests_ = !has_passes;
  // Whatever there is to wait for, asking at every entry does not bring it.
  pause_entries_ = has_passes ? 0 : std::clamp<std::uint64_t>(2 * pause_entries_, 1, most_pause);
  pause_until_ = entry + pause_entries_;
}

bool AgreementBackoff::refuse(bool is_overtaken, bool is_late, double now) {
  if (++refusals_ == 1) refused_since_ = now;
  if (is_late) return refusals_ <= most_late_refusals;
  return refusals_ <= most_refusals || (is_overtaken && now - refused_since_ < patience_seconds_);
}

void AgreementBackoff::back_off(const std::string& why) {
  last_refusal_ = why;
  margin_ = std::min(2 * margin_, most_margin);
}

std::string AgreementBackoff::explain() {
  if (refusals_ == 0 || std::exchange(explained_, true)) return {};
  return "in " + std::to_string(refusals_) +
         " attempts, so this rank ran what was known before: " + last_refusal_;
}

}  // namespace contextune
