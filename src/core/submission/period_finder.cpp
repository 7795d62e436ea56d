#include "core/submission/period_finder.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "core/value/stable_hash.hpp"

namespace contextune {
namespace {

constexpr std::uint64_t rarest_unit = 1024;      // steps between searches at most
constexpr std::uint64_t doubling_after = 16384;  // steps without a find until searches are rarer
constexpr std::uint64_t nothing_after = 65536;   // steps without a find until nothing repeats
constexpr std::uint64_t steps_ahead = 2048;      // steps whose work may be done before them
constexpr std::uint32_t most_passed = 3;         // periods that a search finds and passes over
constexpr std::uint32_t chance_runs = 4;         // breaks that a longer cycle may have early

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
    : ring_(std::make_unique_for_overwrite<std::uint64_t[]>(ring_size)),
      pool_(std::make_unique_for_overwrite<std::uint64_t[]>(pool_size + longest)),
      borders_(std::make_unique_for_overwrite<std::uint16_t[]>(pool_size)),
      extension_(std::make_unique_for_overwrite<std::uint16_t[]>(longest + 1)) {}

std::size_t PeriodFinder::memory_bytes() noexcept {
  return sizeof(PeriodFinder) + (ring_size + pool_size + longest) * sizeof(std::uint64_t) +
         (pool_size + longest + 1) * sizeof(std::uint16_t);
}

std::uint32_t PeriodFinder::followed() const noexcept {
  return id_of(followed_);
}

std::uint32_t PeriodFinder::id_of(std::uint32_t index) const noexcept {
  return index == nobody ? 0 : known_[index].id;
}

std::uint32_t PeriodFinder::followed_length() const noexcept {
  return followed_ == nobody ? 0 : known_[followed_].length;
}

PeriodStep PeriodFinder::see_slowly(std::uint64_t token) noexcept {
  bool voids = false;
  if (outer_ != nobody) {
    voids = open_ && expected_ != first_;
    stop_following(steps_ - 1);
    follow(std::exchange(outer_, nobody), 0);
  }
  if (followed_ == nobody) return look(token) ? PeriodStep::Begins : PeriodStep::Outside;
  if (token != *expected_) return break_off(token);
  const PeriodStep step = go_on();
  if (watching_) watch(token);
  return voids ? PeriodStep::Restarts : step;
}

// The step is what the followed period has here.
PeriodStep PeriodFinder::go_on() noexcept {
  const bool begins = expected_ == first_;
  open_ = open_ || begins;
  if (++expected_ == end_) {
    expected_ = first_;
    // Periods inside one that was joined midway count for themselves.
    if (open_)
      ++led_;
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
  if (outer_ != nobody)
    count_whole(known_[outer_]);
  else if (steps_ >= watch_until_) {
    watching_ = false;
    steady_ = open_;
  }
}

PeriodStep PeriodFinder::break_off(std::uint64_t token) noexcept {
  const bool was_open = open_;
  open_ = false;
  const auto phase = static_cast<std::uint32_t>(expected_ - first_);
  const std::uint32_t broken = followed_;
  last_went_on_ = led_ > 0;
  stop_following(steps_ - 1);
  for (Known& known : known_)
    if (!(watching_ && known.watched)) known.matched = 0;
  watching_ = false;
  known_[broken].matched = phase;
  last_break_ = steps_;
  const bool begins = look(token);
  if (was_open) return begins ? PeriodStep::Restarts : PeriodStep::Broken;
  return begins ? PeriodStep::Begins : PeriodStep::Outside;
}

// Nothing is followed. True if a known period begins with this step.
bool PeriodFinder::look(std::uint64_t token) noexcept {
  ++idle_;
  if (idle_ % doubling_after == 0) unit_ = std::min(unit_ * 2, rarest_unit);
  std::uint32_t match = longest_match(token, false);
  std::uint32_t again = begins_at_once(token) ? last_ : nobody;
  if (match != nobody && again != nobody && known_[match].length <= known_[again].length)
    match = nobody;
  // Known periods that follow each other without a gap must not hide the one around them.
  const std::uint32_t match_id = id_of(match);
  const std::uint32_t again_id = id_of(again);
  search();
  if (followed_ != nobody) return false;
  // The search may have forgotten them.
  if (id_of(match) != match_id) match = nobody;
  if (id_of(again) != again_id) again = nobody;
  if (match != nobody) {
    count_whole(known_[match]);
    follow(match, 0);
    return false;
  }
  if (again == nobody) return false;
  follow(again, 0);
  return go_on() == PeriodStep::Begins;
}

// Whether a step can only be the first of the period that was followed last. Not twice in vain.
bool PeriodFinder::begins_at_once(std::uint64_t token) const noexcept {
  if (last_ == nobody || !last_went_on_) return false;
  const Known& last = known_[last_];
  return last.first_is_unique && pool_[last.at] == token && followable(last);
}

// Adds a step to what matches a known period (Knuth, Morris, Pratt). True after a whole one.
bool PeriodFinder::feed(Known& known, std::uint64_t token) const noexcept {
  const std::uint64_t* const tokens = &pool_[known.at];
  const std::uint16_t* const borders = &borders_[known.at];
  std::uint32_t matched = known.matched;
  while (tokens[matched] != token) {
    if (matched == 0) {
      known.matched = 0;
      return false;
    }
    matched = borders[matched - 1];
  }
  ++matched;
  const bool whole = matched == known.length;
  known.matched = whole ? borders[matched - 1] : matched;
  return whole;
}

std::uint32_t PeriodFinder::longest_match(std::uint64_t token, bool only_watched) noexcept {
  std::uint32_t match = nobody;
  for (std::uint32_t i = 0; i < most_periods; ++i) {
    Known& known = known_[i];
    if (known.id == 0 || (only_watched && !known.watched)) continue;
    if (feed(known, token) && followable(known) &&
        (match == nobody || known.length > known_[match].length))
      match = i;
  }
  return match;
}

// A whole entry has just been seen that was not followed from its beginning.
void PeriodFinder::count_whole(Known& known) const noexcept {
  if (steps_ - known.counted_to < known.length) return;
  ++known.entries;
  known.counted_to = steps_;
}

void PeriodFinder::follow(std::uint32_t index, std::uint32_t phase) noexcept {
  Known& known = known_[index];
  followed_ = last_ = index;
  first_ = &pool_[known.at];
  end_ = first_ + known.length;
  expected_ = first_ + phase;
  led_ = 0;
  ++known.runs;
  steady_ = false;
  idle_ = 0;
  unit_ = first_unit;
  const bool watching = watching_;  // so another was followed until now
  std::uint32_t longest_watched = 0;
  for (Known& other : known_) {
    if (watching && !other.watched) other.matched = 0;
    other.watched = other.id != 0 && other.holds[index] > 0 && followable(other);
    if (other.watched) longest_watched = std::max(longest_watched, other.length);
  }
  watching_ = longest_watched > 0;
  watch_until_ = steps_ + std::uint64_t{2} * longest_watched;
}

// @param end the step behind the last one that belonged to it
void PeriodFinder::stop_following(std::uint64_t end) noexcept {
  Known& known = known_[followed_];
  known.led += led_;
  known.counted_to =
      std::max(known.counted_to, end - static_cast<std::uint64_t>(expected_ - first_));
  // Periods that repeat inside have been counted with it.
  for (std::uint32_t i = 0; i < most_periods; ++i)
    if (known.holds[i] > 0) known_[i].counted_to = std::max(known_[i].counted_to, known.counted_to);
  led_ = 0;
  followed_ = nobody;
  steady_ = false;
}

// Searches the last steps when a multiple of the unit has been passed, the further back the greater
// the power of two that divides it. So each step takes part in one search of every size.
void PeriodFinder::search() noexcept {
  const std::uint64_t passed = steps_ ^ last_search_;
  if (passed < unit_ || steps_ + steps_ahead < free_at_) return;
  const auto window = std::min<std::uint64_t>(
      {std::uint64_t{4} * std::bit_floor(std::min<std::uint64_t>(passed, ring_size)), ring_size,
       steps_});
  search_back(static_cast<std::uint32_t>(window));
  // Behind a short period that was found, the longer ones are still to be searched.
  if (followed_ == nobody) last_search_ = steps_;
}

// Follows the shortest period that the steps up to now have and that is to be followed. How far
// back a period goes is the length of what the reversed steps have in common with themselves moved
// by it (the Z function).
void PeriodFinder::search_back(std::uint32_t window) noexcept {
  std::uint32_t left = 0;
  std::uint32_t right = 0;
  std::array<std::uint32_t, most_passed> passed{};
  std::uint32_t passed_count = 0;
  const std::uint32_t most = std::min(longest, window / 2);
  std::uint32_t period = 1;
  for (; period <= most && passed_count < most_passed; ++period) {
    std::uint32_t same = 0;
    if (period < right) same = std::min<std::uint32_t>(right - period, extension_[period - left]);
    if (period + same >= right) {
      while (period + same < window && back(same) == back(period + same)) ++same;
      left = period;
      right = period + same;
    }
    extension_[period] = static_cast<std::uint16_t>(same);
    // Longer cycles with a break inside come by chance more easily.
    const bool holds_break = last_break_ != 0 && steps_ - last_break_ < period;
    if (same < std::max(evidence, holds_break ? 2 * period : period)) continue;
    const bool several =
        std::any_of(passed.begin(), passed.begin() + passed_count, [&](std::uint32_t shorter) {
          return period % shorter == 0 && extension_[shorter] >= period;
        });
    if (several) continue;
    find(period);
    if (followed_ != nobody) break;
    passed[passed_count++] = period;
  }
  spend(period + right);
}

// The last steps have a period: follows it from here on if it is to be followed. Its entries begin
// where it was first entered.
void PeriodFinder::find(std::uint32_t period) noexcept {
  const std::uint64_t available = std::min<std::uint64_t>(steps_, ring_size);
  std::uint64_t run = period + extension_[period];
  while (run < available && back(run) == back(run - period)) ++run;
  std::uint64_t* const tokens = &pool_[pool_size];
  for (std::uint32_t i = 0; i < period; ++i) tokens[i] = back(run - 1 - i);

  Known cycle;
  cycle.length = period;
  cycle.at = pool_size;
  cycle.least = least_rotation(tokens, period);
  StableHash hash;
  for (std::uint32_t i = 0; i < period; ++i)
    hash.add(tokens[cycle.least + i < period ? cycle.least + i : cycle.least + i - period]);
  cycle.identity = hash.value();
  spend(run + std::uint64_t{8} * period);

  auto phase = static_cast<std::uint32_t>(run % period);
  std::uint32_t index = same_cycle(cycle);
  if (index == nobody)
    index = learn(cycle);
  else
    phase = (phase + period - cycle.least + known_[index].least) % period;

  Known& known = known_[index];
  const std::uint64_t uncounted = std::min(run, steps_ - known.counted_to);
  if (uncounted > phase) {
    known.entries += (uncounted - phase) / period;
    known.counted_to = steps_ - phase;
  }
  if (followable(known)) follow(index, phase);
}

std::uint32_t PeriodFinder::same_cycle(const Known& cycle) const noexcept {
  for (std::uint32_t index = 0; index < most_periods; ++index) {
    const Known& known = known_[index];
    if (known.id == 0 || known.length != cycle.length || known.identity != cycle.identity) continue;
    std::uint32_t same = 0;
    while (same < cycle.length && pool_[known.at + (known.least + same) % cycle.length] ==
                                      pool_[cycle.at + (cycle.least + same) % cycle.length])
      ++same;
    if (same == cycle.length) return index;
  }
  return nobody;
}

std::uint32_t PeriodFinder::learn(const Known& cycle) noexcept {
  make_room(cycle.length);
  std::uint32_t index = 0;
  while (known_[index].id != 0) ++index;
  Known& known = known_[index];
  known = cycle;
  known.id = next_id_++;
  known.at = pool_used_;
  pool_used_ += known.length;
  std::uint64_t* const tokens = &pool_[known.at];
  std::memcpy(tokens, &pool_[cycle.at], known.length * sizeof(*tokens));
  known.first_is_unique =
      std::find(tokens + 1, tokens + known.length, *tokens) == tokens + known.length;
  std::uint16_t* const borders = &borders_[known.at];
  borders[0] = 0;
  for (std::uint32_t i = 1, border = 0; i < known.length; ++i) {
    while (border > 0 && tokens[i] != tokens[border]) border = borders[border - 1];
    if (tokens[i] == tokens[border]) ++border;
    borders[i] = static_cast<std::uint16_t>(border);
  }
  relate(index);
  return index;
}

// Which known periods repeat inside this one, and inside which it repeats.
void PeriodFinder::relate(std::uint32_t index) noexcept {
  Known& known = known_[index];
  for (std::uint32_t i = 0; i < most_periods; ++i) {
    Known& other = known_[i];
    if (other.id == 0 || i == index) continue;
    if (other.length < known.length) known.holds[i] = repeats_inside(known, other);
    if (other.length > known.length) other.holds[index] = repeats_inside(other, known);
  }
  for (std::uint32_t i = 0; i < most_periods; ++i) {
    const Known& other = known_[i];
    if (other.id == 0 || !other.too_long || other.length > known.length) continue;
    bool both_hold = false;
    for (std::uint32_t j = 0; j < most_periods; ++j)
      both_hold = both_hold || (known.holds[j] > 0 && other.holds[j] > 0);
    if (known.holds[i] > 0 || both_hold) known.too_long = true;
  }
}

// Forgets the periods that cover least until another one fits.
void PeriodFinder::make_room(std::uint32_t length) noexcept {
  for (;;) {
    std::uint32_t least = nobody;
    bool any_free = false;
    for (std::uint32_t i = 0; i < most_periods; ++i) {
      if (known_[i].id == 0)
        any_free = true;
      else if (least == nobody ||
               entries_of(i) * known_[i].length <= entries_of(least) * known_[least].length)
        least = i;
    }
    if (any_free && pool_used_ + length <= pool_size) return;
    forget(least);
  }
}

void PeriodFinder::forget(std::uint32_t index) noexcept {
  const Known gone = known_[index];
  known_[index] = Known{};
  if (last_ == index) last_ = nobody;
  for (std::uint32_t i = 0; i < most_periods; ++i) {
    Known& other = known_[i];
    other.holds[index] = 0;
    if (other.id == 0) continue;
    other.entries += gone.holds[i] * gone.led;
    if (other.at > gone.at) other.at -= gone.length;
  }
  const std::uint32_t moved = pool_used_ - gone.at - gone.length;
  std::memmove(&pool_[gone.at], &pool_[gone.at + gone.length], moved * sizeof(pool_[0]));
  std::memmove(&borders_[gone.at], &borders_[gone.at + gone.length], moved * sizeof(borders_[0]));
  pool_used_ -= gone.length;
  spend(moved / 2);
}

// Entries of one period in an entry of another, those that stand alone left out.
std::uint32_t PeriodFinder::repeats_inside(const Known& outer, const Known& inner) noexcept {
  Known matching = inner;
  matching.matched = 0;
  std::uint32_t count = 0;
  std::uint32_t end_before = 0;
  bool counted_before = false;
  const std::uint64_t* const tokens = &pool_[outer.at];
  const auto begin = static_cast<std::uint32_t>(
      std::find(tokens, tokens + outer.length, pool_[inner.at]) - tokens);
  spend(begin / 4 + std::uint64_t{2} * (outer.length - begin));
  for (std::uint32_t i = begin; i < outer.length; ++i) {
    if (!feed(matching, tokens[i])) continue;
    matching.matched = 0;
    const std::uint32_t end = i + 1;
    const bool follows = end_before != 0 && end - end_before == inner.length;
    if (follows) count += counted_before ? 1 : 2;
    counted_before = follows;
    end_before = end;
  }
  return count;
}

// A cycle around another may have come by chance: it is not followed once it has often been broken
// before it came twice.
bool PeriodFinder::came_by_chance(const Known& known) noexcept {
  return known.runs >= chance_runs && known.entries + known.led < std::uint64_t{2} * known.runs &&
         holds_any(known);
}

bool PeriodFinder::holds_any(const Known& known) noexcept {
  return std::any_of(known.holds.begin(), known.holds.end(),
                     [](std::uint32_t entries) { return entries > 0; });
}

bool PeriodFinder::followable(const Known& known) const noexcept {
  return !known.too_long && !came_by_chance(known);
}

bool PeriodFinder::keep_inside() noexcept {
  if (followed_ == nobody) return false;
  const std::uint32_t outer = followed_;
  std::uint32_t inner = nobody;
  // The longest of those that make up most of it, or else that which makes up the most.
  const auto rank = [&](std::uint32_t i) {
    const std::uint64_t steps = std::uint64_t{known_[outer].holds[i]} * known_[i].length;
    const bool is_most = 2 * steps >= known_[outer].length;
    return std::pair(is_most, is_most ? std::uint64_t{known_[i].length} : steps);
  };
  for (std::uint32_t i = 0; i < most_periods; ++i) {
    if (known_[outer].holds[i] == 0 || !followable(known_[i])) continue;
    if (inner == nobody || rank(i) > rank(inner)) inner = i;
  }
  if (inner == nobody) return false;
  stop_following(steps_);
  known_[outer].too_long = true;
  for (std::uint32_t i = 0; i < most_periods; ++i) {
    Known& other = known_[i];
    other.matched = 0;
    if (other.id != 0 && other.length > known_[outer].length &&
        (other.holds[outer] > 0 || other.holds[inner] > 0))
      other.too_long = true;
  }
  open_ = watching_ = false;
  outer_ = nobody;
  last_ = inner;
  last_went_on_ = true;
  return true;
}

Finding PeriodFinder::finding() const noexcept {
  if (idle_ >= nothing_after) return Finding::NothingRepeats;
  const bool any =
      std::any_of(known_.begin(), known_.end(), [](const Known& k) { return k.id != 0; });
  return any ? Finding::Found : Finding::Looking;
}

std::uint64_t PeriodFinder::led_of(std::uint32_t index) const noexcept {
  return known_[index].led + (index == followed_ ? led_ : 0);
}

std::uint64_t PeriodFinder::entries_of(std::uint32_t index) const noexcept {
  std::uint64_t entries = known_[index].entries + led_of(index);
  for (std::uint32_t i = 0; i < most_periods; ++i) entries += known_[i].holds[index] * led_of(i);
  return entries;
}

void PeriodFinder::spend(std::uint64_t operations) noexcept {
  work_ += operations;
  free_at_ = std::max(free_at_, steps_) + (operations + work_a_step - 1) / work_a_step;
}

std::vector<FoundPeriod> PeriodFinder::found() const {
  std::vector<FoundPeriod> periods;
  for (std::uint32_t i = 0; i < most_periods; ++i) {
    const Known& known = known_[i];
    if (known.id == 0 || (i != followed_ && came_by_chance(known))) continue;
    FoundPeriod& period = periods.emplace_back();
    period.id = known.id;
    period.length = known.length;
    period.identity = known.identity;
    period.entries = entries_of(i);
    period.steps = period.entries * known.length;
  }
  std::sort(periods.begin(), periods.end(), [](const FoundPeriod& a, const FoundPeriod& b) {
    return a.steps != b.steps ? a.steps > b.steps : a.id < b.id;
  });
  return periods;
}

std::span<const std::uint64_t> PeriodFinder::tokens(std::uint32_t id) const noexcept {
  for (const Known& known : known_)
    if (id != 0 && known.id == id) return {&pool_[known.at], known.length};
  return {};
}

}  // namespace contextune
