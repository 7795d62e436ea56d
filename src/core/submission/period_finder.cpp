#include "core/submission/period_finder.hpp"

#include <algorithm>
#include <utility>

#include "core/value/stable_hash.hpp"

namespace contextune {
namespace {

constexpr std::uint32_t most_passed = 3;  // periods that a search finds and passes over

// Where the least rotation of a cycle begins. Takes at most 3 * length comparisons.
std::uint32_t least_rotation(const std::uint64_t* tokens, std::uint32_t length) {
  std::uint32_t i = 0;
  std::uint32_t j = 1;
  std::uint32_t same = 0;
  const auto at = [&](std::uint32_t k) { return tokens[k < length ? k : k - length]; };
  while (i < length && j < length && same < length) {
    const std::uint64_t a = at(i + same);
    const std::uint64_t b = at(j + same);
    if (a == b) {
      ++same;
      continue;
    }
    (a > b ? i : j) += same + 1;
    if (i == j) ++j;
    same = 0;
  }
  return std::min(i, j);
}

}  // namespace

PeriodFinder::PeriodFinder()
    : extension_(std::make_unique_for_overwrite<std::uint16_t[]>(longest + 1)) {}

std::size_t PeriodFinder::memory_bytes() noexcept {
  constexpr std::size_t pool_size = KnownPeriods::pool_size;
  return sizeof(PeriodFinder) + (StepRing::size + pool_size + longest) * sizeof(std::uint64_t) +
         (pool_size + longest + 1) * sizeof(std::uint16_t);
}

std::uint32_t PeriodFinder::followed() const noexcept {
  return known_.id_of(followed_);
}

std::uint32_t PeriodFinder::followed_length() const noexcept {
  return followed_ == KnownPeriods::nobody ? 0 : known_[followed_].length;
}

std::uint64_t PeriodFinder::followed_steps() const noexcept {
  return followed_ == KnownPeriods::nobody
             ? 0
             : known_.entries_of(followed_, followed_, walk_.entries()) * followed_length();
}

PeriodStep PeriodFinder::see_slowly(std::uint64_t token) noexcept {
  bool voids = false;
  if (outer_ != KnownPeriods::nobody) {
    voids = open_ && !walk_.is_at_first();
    stop_following(pace_.steps() - 1);
    follow(std::exchange(outer_, KnownPeriods::nobody), 0);
  }
  if (followed_ == KnownPeriods::nobody)
    return look(token) ? PeriodStep::Begins : PeriodStep::Outside;
  if (token != walk_.expected()) return break_off(token);
  const PeriodStep step = go_on();
  if (watching_) watch(token);
  return voids ? PeriodStep::Restarts : step;
}

// The step is what the followed period has here.
PeriodStep PeriodFinder::go_on() noexcept {
  const bool begins = walk_.is_at_first();
  open_ = open_ || begins;
  if (walk_.pass()) {
    // Periods inside one that was joined midway count for themselves.
    if (open_)
      walk_.count_entry();
    else
      count_whole(known_[followed_]);
  }
  steady_ = open_ && !watching_;
  return begins ? PeriodStep::Begins : open_ ? PeriodStep::Inside : PeriodStep::Outside;
}

// Looks whether a longer period has come, in which the followed one repeats. It is followed from
// the next step on.
void PeriodFinder::watch(std::uint64_t token) noexcept {
  outer_ = longest_match(token, true);
  if (outer_ != KnownPeriods::nobody)
    count_whole(known_[outer_]);
  else if (pace_.steps() >= watch_until_) {
    watching_ = false;
    steady_ = open_;
  }
}

PeriodStep PeriodFinder::break_off(std::uint64_t token) noexcept {
  const bool was_open = open_;
  open_ = false;
  const std::uint32_t phase = walk_.phase();
  const std::uint32_t broken = followed_;
  last_went_on_ = walk_.entries() > 0;
  stop_following(pace_.steps() - 1);
  for (KnownPeriod& known : known_)
    if (!(watching_ && known.watched)) known.matched = 0;
  watching_ = false;
  known_[broken].matched = phase;
  last_break_ = pace_.steps();
  const bool begins = look(token);
  if (was_open) return begins ? PeriodStep::Restarts : PeriodStep::Broken;
  return begins ? PeriodStep::Begins : PeriodStep::Outside;
}

// Nothing is followed. True if a known period begins with this step.
bool PeriodFinder::look(std::uint64_t token) noexcept {
  pace_.idle();
  std::uint32_t match = longest_match(token, false);
  std::uint32_t again = begins_at_once(token) ? known_.last() : KnownPeriods::nobody;
  if (match != KnownPeriods::nobody && again != KnownPeriods::nobody &&
      known_[match].length <= known_[again].length)
    match = KnownPeriods::nobody;
  // Known periods that follow each other without a gap must not hide the one around them.
  const std::uint32_t match_id = known_.id_of(match);
  const std::uint32_t again_id = known_.id_of(again);
  search();
  if (followed_ != KnownPeriods::nobody) return false;
  // The search may have forgotten them.
  if (known_.id_of(match) != match_id) match = KnownPeriods::nobody;
  if (known_.id_of(again) != again_id) again = KnownPeriods::nobody;
  if (match != KnownPeriods::nobody) {
    count_whole(known_[match]);
    follow(match, 0);
    return false;
  }
  if (again == KnownPeriods::nobody) return false;
  follow(again, 0);
  return go_on() == PeriodStep::Begins;
}

// Whether a step can only be the first of the period that was followed last. Not twice in vain.
bool PeriodFinder::begins_at_once(std::uint64_t token) const noexcept {
  if (known_.last() == KnownPeriods::nobody || !last_went_on_) return false;
  const KnownPeriod& last = known_[known_.last()];
  return last.first_is_unique && *known_.tokens(last) == token && KnownPeriods::followable(last);
}

std::uint32_t PeriodFinder::longest_match(std::uint64_t token, bool only_watched) noexcept {
  std::uint32_t match = KnownPeriods::nobody;
  for (std::uint32_t i = 0; i < KnownPeriods::most; ++i) {
    KnownPeriod& known = known_[i];
    if (known.id == 0 || (only_watched && !known.watched)) continue;
    if (known_.feed(known, token) && KnownPeriods::followable(known) &&
        (match == KnownPeriods::nobody || known.length > known_[match].length))
      match = i;
  }
  return match;
}

// A whole entry has just been seen that was not followed from its beginning.
void PeriodFinder::count_whole(KnownPeriod& known) const noexcept {
  if (pace_.steps() - known.counted_to < known.length) return;
  ++known.entries;
  known.counted_to = pace_.steps();
}

void PeriodFinder::follow(std::uint32_t index, std::uint32_t phase) noexcept {
  KnownPeriod& known = known_[index];
  followed_ = index;
  known_.set_last(index);
  walk_.begin(known_.tokens(known), known.length, phase);
  ++known.runs;
  steady_ = false;
  pace_.found();
  const bool watching = watching_;  // so another was followed until now
  std::uint32_t longest_watched = 0;
  for (KnownPeriod& other : known_) {
    if (watching && !other.watched) other.matched = 0;
    other.watched = other.id != 0 && other.holds[index] > 0 && KnownPeriods::followable(other);
    if (other.watched) longest_watched = std::max(longest_watched, other.length);
  }
  watching_ = longest_watched > 0;
  watch_until_ = pace_.steps() + std::uint64_t{2} * longest_watched;
}

// @param end the step behind the last one that belonged to it
void PeriodFinder::stop_following(std::uint64_t end) noexcept {
  KnownPeriod& known = known_[followed_];
  known.led += walk_.entries();
  known.counted_to = std::max(known.counted_to, end - walk_.phase());
  // Periods that repeat inside have been counted with it.
  for (std::uint32_t i = 0; i < KnownPeriods::most; ++i)
    if (known.holds[i] > 0) known_[i].counted_to = std::max(known_[i].counted_to, known.counted_to);
  walk_.forget_entries();
  followed_ = KnownPeriods::nobody;
  steady_ = false;
}

void PeriodFinder::search() noexcept {
  const std::uint32_t window = pace_.window(StepRing::size);
  if (window == 0) return;
  search_back(window);
  // Behind a short period that was found, the longer ones are still to be searched.
  if (followed_ == KnownPeriods::nobody) pace_.searched();
}

// Follows the shortest period that the steps up to now have and that is to be followed. How far
// back a period goes is the length of what the reversed steps have in common with themselves moved
// by it (the Z function).
void PeriodFinder::search_back(std::uint32_t window) noexcept {
  std::uint32_t left = 0;
  std::uint32_t right = 0;
  std::array<std::uint32_t, most_passed> passed{};
  std::uint32_t passed_count = 0;
  const std::uint32_t most_steps = std::min(longest, window / 2);
  std::uint32_t period = 1;
  for (; period <= most_steps && passed_count < most_passed; ++period) {
    std::uint32_t same = 0;
    if (period < right) same = std::min<std::uint32_t>(right - period, extension_[period - left]);
    if (period + same >= right) {
      while (period + same < window && back(same) == back(period + same)) ++same;
      left = period;
      right = period + same;
    }
    extension_[period] = static_cast<std::uint16_t>(same);
    // Longer cycles with a break inside come by chance more easily.
    const bool holds_break = last_break_ != 0 && pace_.steps() - last_break_ < period;
    if (same < std::max(evidence, holds_break ? 2 * period : period)) continue;
    const bool several =
        std::any_of(passed.begin(), passed.begin() + passed_count, [&](std::uint32_t shorter) {
          return period % shorter == 0 && extension_[shorter] >= period;
        });
    if (several) continue;
    find(period);
    if (followed_ != KnownPeriods::nobody) break;
    passed[passed_count++] = period;
  }
  pace_.spend(period + right);
}

// The last steps have a period: follows it from here on if it is to be followed. Its entries begin
// where it was first entered.
void PeriodFinder::find(std::uint32_t period) noexcept {
  const std::uint64_t available = std::min<std::uint64_t>(pace_.steps(), StepRing::size);
  std::uint64_t run = period + extension_[period];
  while (run < available && back(run) == back(run - period)) ++run;
  std::uint64_t* const tokens = known_.found_tokens();
  for (std::uint32_t i = 0; i < period; ++i) tokens[i] = back(run - 1 - i);

  KnownPeriod cycle;
  cycle.length = period;
  cycle.at = KnownPeriods::pool_size;
  cycle.least = least_rotation(tokens, period);
  StableHash hash;
  for (std::uint32_t i = 0; i < period; ++i)
    hash.add(tokens[cycle.least + i < period ? cycle.least + i : cycle.least + i - period]);
  cycle.identity = hash.value();
  pace_.spend(run + std::uint64_t{8} * period);

  auto phase = static_cast<std::uint32_t>(run % period);
  std::uint32_t index = known_.same_cycle(cycle);
  if (index == KnownPeriods::nobody)
    index = known_.learn(cycle, pace_);
  else
    phase = (phase + period - cycle.least + known_[index].least) % period;

  KnownPeriod& known = known_[index];
  const std::uint64_t uncounted = std::min(run, pace_.steps() - known.counted_to);
  if (uncounted > phase) {
    known.entries += (uncounted - phase) / period;
    known.counted_to = pace_.steps() - phase;
  }
  if (KnownPeriods::followable(known)) follow(index, phase);
}

bool PeriodFinder::keep_inside() noexcept {
  if (followed_ == KnownPeriods::nobody) return false;
  const std::uint32_t outer = followed_;
  std::uint32_t inner = KnownPeriods::nobody;
  // The longest of those that make up most of it, or else that which makes up the most.
  const auto rank = [&](std::uint32_t i) {
    const std::uint64_t steps = std::uint64_t{known_[outer].holds[i]} * known_[i].length;
    const bool is_most = 2 * steps >= known_[outer].length;
    return std::pair(is_most, is_most ? std::uint64_t{known_[i].length} : steps);
  };
  for (std::uint32_t i = 0; i < KnownPeriods::most; ++i) {
    if (known_[outer].holds[i] == 0 || !KnownPeriods::followable(known_[i])) continue;
    if (inner == KnownPeriods::nobody || rank(i) > rank(inner)) inner = i;
  }
  if (inner == KnownPeriods::nobody) return false;
  stop_following(pace_.steps());
  known_[outer].too_long = true;
  for (std::uint32_t i = 0; i < KnownPeriods::most; ++i) {
    KnownPeriod& other = known_[i];
    other.matched = 0;
    if (other.id != 0 && other.length > known_[outer].length &&
        (other.holds[outer] > 0 || other.holds[inner] > 0))
      other.too_long = true;
  }
  open_ = watching_ = false;
  outer_ = KnownPeriods::nobody;
  known_.set_last(inner);
  last_went_on_ = true;
  return true;
}

Finding PeriodFinder::finding() const noexcept {
  if (pace_.is_hopeless()) return Finding::NothingRepeats;
  const bool any =
      std::any_of(known_.begin(), known_.end(), [](const KnownPeriod& k) { return k.id != 0; });
  return any ? Finding::Found : Finding::Looking;
}

std::vector<FoundPeriod> PeriodFinder::found() const {
  std::vector<FoundPeriod> periods;
  for (std::uint32_t i = 0; i < KnownPeriods::most; ++i) {
    const KnownPeriod& known = known_[i];
    if (known.id == 0 || (i != followed_ && KnownPeriods::came_by_chance(known))) continue;
    FoundPeriod& period = periods.emplace_back();
    period.id = known.id;
    period.length = known.length;
    period.identity = known.identity;
    period.entries = known_.entries_of(i, followed_, walk_.entries());
    period.steps = period.entries * known.length;
  }
  std::sort(periods.begin(), periods.end(), [](const FoundPeriod& a, const FoundPeriod& b) {
    return a.steps != b.steps ? a.steps > b.steps : a.id < b.id;
  });
  return periods;
}

std::span<const std::uint64_t> PeriodFinder::tokens(std::uint32_t id) const noexcept {
  for (const KnownPeriod& known : known_)
    if (id != 0 && known.id == id) return {known_.tokens(known), known.length};
  return {};
}

}  // namespace contextune
