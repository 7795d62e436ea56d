#include "collective/lease_table.hpp"

#include <algorithm>

namespace contextune::collective {
namespace {

constexpr std::uint64_t free_place = 0;
constexpr std::uint64_t left_place = 1;
constexpr std::size_t nowhere = LeaseTable::capacity;

constexpr std::uint64_t mix(std::uint64_t word) noexcept {
  word = (word ^ (word >> 33U)) * 0xff51afd7ed558ccdU;
  word = (word ^ (word >> 33U)) * 0xc4ceb9fe1a85ec53U;
  return word ^ (word >> 33U);
}

/// The properties that keys have to share for one to take after another.
std::uint64_t family_of(const LeaseKey& key) noexcept {
  return std::uint64_t{key.operations} << 32U | std::uint64_t{key.kind} << 8U |
         static_cast<std::uint64_t>(key.function);
}

/// 64 bits for a key, so that a place is taken by one exchange of one word. That two of a few
/// hundred keys share them is left to chance (1e-14).
std::uint64_t fingerprint_of(const LeaseKey& key) noexcept {
  const std::uint64_t mixed = mix(mix(mix(key.communicator) + key.bytes) + family_of(key));
  return mixed > left_place ? mixed : mixed + left_place + 1;
}

// A decision in 32 bits; 0: none.
std::uint32_t packed(const Decision& decision) noexcept {
  constexpr std::uint32_t some = 1U << 31U;
  if (decision.is_default()) return some;
  return some | 1U << 30U | static_cast<std::uint32_t>(decision.cell.algorithm) << 16U |
         static_cast<std::uint32_t>(decision.cell.protocol) << 8U | decision.channels;
}
Decision unpacked(std::uint32_t word) noexcept {
  if ((word >> 30U & 1U) == 0) return {};
  return {true,
          {static_cast<Algorithm>(word >> 16U & 0xffU), static_cast<Protocol>(word >> 8U & 0xffU)},
          static_cast<std::uint8_t>(word & 0xffU)};
}

constexpr std::size_t place_at(std::uint64_t fingerprint, std::size_t step) noexcept {
  return (fingerprint + step) % LeaseTable::capacity;
}

}  // namespace

void LeaseTable::StoredLease::answer(Grant& grant) const noexcept {
  grant.epoch = epoch;
  const std::uint64_t at = grant.number - first_decision;
  const StoredSpan* const end = spans.data() + num_spans;
  // As a rule its trials are over.
  const bool is_over = num_spans == 0 || (end - 1)->end <= at;
  const StoredSpan* const span =
      is_over
          ? end
          : std::upper_bound(spans.data(), end, at, [](std::uint64_t n, const StoredSpan& other) {
              return n < other.end;
            });
  grant.decision = span == end ? afterwards : span->decision;
  grant.config = span == end ? config_afterwards : span->config;
  grant.is_trial = span != end;
}

std::size_t LeaseTable::find(std::uint64_t fingerprint) const noexcept {
  for (std::size_t step = 0; step < places_to_look; ++step) {
    const std::size_t at = place_at(fingerprint, step);
    const std::uint64_t there = places_[at].key.load(std::memory_order_acquire);
    if (there == fingerprint) return at;
    if (there == free_place) return nowhere;
  }
  return nowhere;
}

std::size_t LeaseTable::find_or_claim(std::uint64_t fingerprint, const LeaseKey& key) noexcept {
  const std::size_t known = find(fingerprint);
  if (known != nowhere || is_full_.load(std::memory_order_relaxed)) return known;
  for (std::size_t step = 0; step < places_to_look; ++step) {
    const std::size_t at = place_at(fingerprint, step);
    std::uint64_t there = places_[at].key.load(std::memory_order_acquire);
    const bool is_unused = there == free_place || there == left_place;
    if (is_unused &&
        places_[at].key.compare_exchange_strong(there, fingerprint, std::memory_order_acq_rel)) {
      places_[at].family.store(family_of(key), std::memory_order_relaxed);
      places_[at].bytes.store(key.bytes, std::memory_order_relaxed);
      places_[at].communicator.store(key.communicator, std::memory_order_release);
      return at;
    }
    if (there == fingerprint) return at;  // another thread made it meanwhile
  }
  is_full_.store(true, std::memory_order_relaxed);
  return nowhere;
}

void LeaseTable::hold(Place& place, const Decision& afterwards) noexcept {
  const std::uint32_t word = packed(afterwards);
  if (place.holding.load(std::memory_order_relaxed) == word) return;
  place.holding.store(word, std::memory_order_relaxed);
  changes_.fetch_add(1, std::memory_order_release);
}

std::uint32_t LeaseTable::nearest_of(const LeaseKey& key) const noexcept {
  const std::uint64_t family = family_of(key);
  std::uint32_t nearest = 0;
  std::uint64_t nearest_bytes = 0;
  for (const Place& place : places_) {
    if (place.communicator.load(std::memory_order_acquire) != key.communicator ||
        place.family.load(std::memory_order_relaxed) != family) {
      continue;
    }
    const std::uint32_t holding = place.holding.load(std::memory_order_relaxed);
    const std::uint64_t bytes = place.bytes.load(std::memory_order_relaxed);
    if (holding == 0 || !are_within(bytes, key.bytes, nearest_within)) continue;
    if (nearest != 0 && !is_nearer(bytes, nearest_bytes, key.bytes)) continue;
    nearest = holding;
    nearest_bytes = bytes;
  }
  return nearest;
}

void LeaseTable::take_nearest(const LeaseKey& key, Place* place, Grant& grant) noexcept {
  // A change for another communicator meanwhile is not looked at; it only causes another look-up.
  const std::uint64_t changes = changes_.load(std::memory_order_acquire);
  if (changes == 0) return;
  std::uint64_t known = place == nullptr ? 0 : place->nearest.load(std::memory_order_relaxed);
  if (known >> 32U != changes) {
    known = changes << 32U | nearest_of(key);
    if (place != nullptr) place->nearest.store(known, std::memory_order_relaxed);
  }
  grant.decision = unpacked(static_cast<std::uint32_t>(known));
  grant.is_nearest = !grant.decision.is_default();
}

Grant LeaseTable::decide(const LeaseKey& key, bool takes_nearest) noexcept {
  return decide(seat_of(key), key, takes_nearest);
}

LeaseTable::Seat LeaseTable::seat_of(const LeaseKey& key) noexcept {
  Seat seat;
  seat.fingerprint_ = fingerprint_of(key);
  seat.place_ = find_or_claim(seat.fingerprint_, key);
  return seat;
}

Grant LeaseTable::decide(const Seat& seat, const LeaseKey& key, bool takes_nearest) noexcept {
  Grant grant;
  const std::size_t at = seat.place_;
  if (at == nowhere) {
    if (takes_nearest) take_nearest(key, nullptr, grant);
    return grant;
  }
  Place& place = places_[at];
  grant.is_counted = true;
  // This and the load that follows are in one order for all threads with the two in prepare() and
  // commit(). So prepare() sees this decision, or the decision sees the last lease, and none older.
  grant.number = place.entered.fetch_add(1, std::memory_order_seq_cst);
  std::uint32_t which = place.latest.load(std::memory_order_seq_cst);
  if (which != 0 && grant.number < stored(at, which).first_decision) {
    which = stored(at, which).before;
  }
  if (which != 0) {
    stored(at, which).answer(grant);
    hold(place, stored(at, which).afterwards);
  } else if (takes_nearest) {
    take_nearest(key, &place, grant);
  }
  place.left.fetch_add(1, std::memory_order_release);
  return grant;
}

bool LeaseTable::is_busy(const Place& place) noexcept {
  // In this order: what has left by now has entered before.
  const std::uint64_t left = place.left.load(std::memory_order_acquire);
  return place.entered.load(std::memory_order_seq_cst) != left;
}

LeaseTable::Refusal LeaseTable::prepare(const Lease& lease) noexcept {
  if (lease.spans.size() > max_spans) return Refusal::TooLong;
  std::uint64_t length = lease.first_decision;
  for (const LeaseSpan& span : lease.spans) {
    if (span.decisions == 0) return Refusal::TooLong;
    if (__builtin_add_overflow(length, span.decisions, &length)) return Refusal::TooLong;
  }
  const std::size_t at = find(fingerprint_of(lease.key));
  if (at == nowhere) return Refusal::UnknownKey;
  Place& place = places_[at];
  if (place.prepared != 0) return Refusal::Prepared;
  const std::uint32_t latest = place.latest.load(std::memory_order_relaxed);
  const StoredLease* const last = latest == 0 ? nullptr : &stored(at, latest);
  if (lease.epoch <= (last == nullptr ? 0 : last->epoch)) return Refusal::OldEpoch;
  const std::uint64_t made = place.entered.load(std::memory_order_seq_cst);
  if (lease.first_decision < made) return Refusal::TooLate;
  if (last != nullptr && made < last->first_decision) return Refusal::NotBegun;
  if (is_busy(place)) return Refusal::DecisionNow;

  // The last lease has begun, so no decision to come goes back to the one before it.
  const std::uint32_t spare = latest == 1 ? 2 : 1;
  StoredLease& to = stored(at, spare);
  to.epoch = lease.epoch;
  to.first_decision = lease.first_decision;
  to.before = latest;
  to.num_spans = static_cast<std::uint32_t>(lease.spans.size());
  to.afterwards = lease.afterwards;
  to.config_afterwards = lease.config_afterwards;
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < lease.spans.size(); ++i) {
    end += lease.spans[i].decisions;
    to.spans[i] = {end, lease.spans[i].decision, lease.spans[i].config};
  }
  place.prepared = spare;
  return Refusal::None;
}

LeaseTable::Committed LeaseTable::commit(std::uint64_t epoch) noexcept {
  Committed committed;
  for (std::size_t at = 0; at < capacity; ++at) {
    Place& place = places_[at];
    if (place.prepared == 0 || stored(at, place.prepared).epoch != epoch) continue;
    const std::uint64_t first_decision = stored(at, place.prepared).first_decision;
    place.latest.store(place.prepared, std::memory_order_seq_cst);
    place.prepared = 0;
    ++committed.leases;
    // Afterwards, so that no decision is missed that was made before it could see the lease.
    if (place.entered.load(std::memory_order_seq_cst) > first_decision) ++committed.late;
  }
  return committed;
}

std::uint64_t LeaseTable::decisions(const LeaseKey& key) const noexcept {
  const std::size_t at = find(fingerprint_of(key));
  return at == nowhere ? 0 : places_[at].entered.load(std::memory_order_acquire);
}

void LeaseTable::forget(std::uint64_t communicator) noexcept {
  for (Place& place : places_) {
    if (place.communicator.load(std::memory_order_acquire) != communicator || is_busy(place)) {
      continue;
    }
    place.latest.store(0, std::memory_order_relaxed);
    place.entered.store(0, std::memory_order_relaxed);
    place.left.store(0, std::memory_order_relaxed);
    place.prepared = 0;
    place.holding.store(0, std::memory_order_relaxed);
    place.nearest.store(0, std::memory_order_relaxed);
    place.communicator.store(0, std::memory_order_relaxed);
    place.key.store(left_place, std::memory_order_release);
  }
}

std::string_view text_of(LeaseTable::Refusal refusal) noexcept {
  switch (refusal) {
    case LeaseTable::Refusal::None:
      return "none";
    case LeaseTable::Refusal::UnknownKey:
      return "no decision of the key was seen here";
    case LeaseTable::Refusal::TooLong:
      return "the lease is longer than a place has room for";
    case LeaseTable::Refusal::OldEpoch:
      return "the epoch is not above that of the lease before";
    case LeaseTable::Refusal::TooLate:
      return "the first decision of the lease was made already";
    case LeaseTable::Refusal::NotBegun:
      return "the lease before has not begun";
    case LeaseTable::Refusal::Prepared:
      return "another lease is prepared for the key";
    case LeaseTable::Refusal::DecisionNow:
      return "a decision of the key is under way";
  }
  return "unknown";
}

}  // namespace contextune::collective
