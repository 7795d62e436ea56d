#include "core/submission/known_periods.hpp"

#include <algorithm>
#include <cstring>

namespace contextune {
namespace {

constexpr std::uint32_t chance_runs = 4;  // breaks that a longer cycle may have early

}  // namespace

KnownPeriods::KnownPeriods()
    : pool_(std::make_unique_for_overwrite<std::uint64_t[]>(pool_size + longest)),
      borders_(std::make_unique_for_overwrite<std::uint16_t[]>(pool_size)) {}

// Adds a step to what matches a known period (Knuth, Morris, Pratt). True after a whole one.
bool KnownPeriods::feed(KnownPeriod& known, std::uint64_t token) const noexcept {
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

std::uint32_t KnownPeriods::same_cycle(const KnownPeriod& cycle) const noexcept {
  for (std::uint32_t index = 0; index < most; ++index) {
    const KnownPeriod& known = known_[index];
    if (known.id == 0 || known.length != cycle.length || known.identity != cycle.identity) continue;
    std::uint32_t same = 0;
    while (same < cycle.length && pool_[known.at + (known.least + same) % cycle.length] ==
                                      pool_[cycle.at + (cycle.least + same) % cycle.length])
      ++same;
    if (same == cycle.length) return index;
  }
  return nobody;
}

std::uint32_t KnownPeriods::learn(const KnownPeriod& cycle, SearchPace& pace) noexcept {
  make_room(cycle.length, pace);
  std::uint32_t index = 0;
  while (known_[index].id != 0) ++index;
  KnownPeriod& known = known_[index];
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
  relate(index, pace);
  return index;
}

// Which known periods repeat inside this one, and inside which it repeats.
void KnownPeriods::relate(std::uint32_t index, SearchPace& pace) noexcept {
  KnownPeriod& known = known_[index];
  for (std::uint32_t i = 0; i < most; ++i) {
    KnownPeriod& other = known_[i];
    if (other.id == 0 || i == index) continue;
    if (other.length < known.length) known.holds[i] = repeats_inside(known, other, pace);
    if (other.length > known.length) other.holds[index] = repeats_inside(other, known, pace);
  }
  for (std::uint32_t i = 0; i < most; ++i) {
    const KnownPeriod& other = known_[i];
    if (other.id == 0 || !other.too_long || other.length > known.length) continue;
    bool both_hold = false;
    for (std::uint32_t j = 0; j < most; ++j)
      both_hold = both_hold || (known.holds[j] > 0 && other.holds[j] > 0);
    if (known.holds[i] > 0 || both_hold) known.too_long = true;
  }
}

// Forgets the periods that cover least until another one fits.
void KnownPeriods::make_room(std::uint32_t length, SearchPace& pace) noexcept {
  for (;;) {
    std::uint32_t least = nobody;
    bool any_free = false;
    for (std::uint32_t i = 0; i < most; ++i) {
      if (known_[i].id == 0)
        any_free = true;
      else if (least == nobody ||
               entries_of(i) * known_[i].length <= entries_of(least) * known_[least].length)
        least = i;
    }
    if (any_free && pool_used_ + length <= pool_size) return;
    forget(least, pace);
  }
}

void KnownPeriods::forget(std::uint32_t index, SearchPace& pace) noexcept {
  const KnownPeriod gone = known_[index];
  known_[index] = KnownPeriod{};
  if (last_ == index) last_ = nobody;
  for (std::uint32_t i = 0; i < most; ++i) {
    KnownPeriod& other = known_[i];
    other.holds[index] = 0;
    if (other.id == 0) continue;
    other.entries += gone.holds[i] * gone.led;
    if (other.at > gone.at) other.at -= gone.length;
  }
  const std::uint32_t moved = pool_used_ - gone.at - gone.length;
  std::memmove(&pool_[gone.at], &pool_[gone.at + gone.length], moved * sizeof(pool_[0]));
  std::memmove(&borders_[gone.at], &borders_[gone.at + gone.length], moved * sizeof(borders_[0]));
  pool_used_ -= gone.length;
  pace.spend(moved / 2);
}

// Entries of one period in an entry of another, those that stand alone left out.
std::uint32_t KnownPeriods::repeats_inside(const KnownPeriod& outer, const KnownPeriod& inner,
                                           SearchPace& pace) noexcept {
  KnownPeriod matching = inner;
  matching.matched = 0;
  std::uint32_t count = 0;
  std::uint32_t end_before = 0;
  bool counted_before = false;
  const std::uint64_t* const tokens = &pool_[outer.at];
  const auto begin = static_cast<std::uint32_t>(
      std::find(tokens, tokens + outer.length, pool_[inner.at]) - tokens);
  pace.spend(begin / 4 + std::uint64_t{2} * (outer.length - begin));
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
bool KnownPeriods::came_by_chance(const KnownPeriod& known) noexcept {
  return known.runs >= chance_runs && known.entries + known.led < std::uint64_t{2} * known.runs &&
         holds_any(known);
}

bool KnownPeriods::holds_any(const KnownPeriod& known) noexcept {
  return std::any_of(known.holds.begin(), known.holds.end(),
                     [](std::uint32_t entries) { return entries > 0; });
}

bool KnownPeriods::followable(const KnownPeriod& known) noexcept {
  return !known.too_long && !came_by_chance(known);
}

std::uint64_t KnownPeriods::entries_of(std::uint32_t index, std::uint32_t followed,
                                       std::uint64_t led) const noexcept {
  const auto led_of = [&](std::uint32_t i) { return known_[i].led + (i == followed ? led : 0); };
  std::uint64_t entries = known_[index].entries + led_of(index);
  for (std::uint32_t i = 0; i < most; ++i) entries += known_[i].holds[index] * led_of(i);
  return entries;
}

}  // namespace contextune
