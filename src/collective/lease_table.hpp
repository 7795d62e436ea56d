#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "collective/lease.hpp"

namespace contextune::collective {

/// The instruction for one getCollInfo call.
struct Grant {
  Decision decision;
  std::uint32_t config = 0;  ///< number of the config; 0: the default
  bool is_trial = false;     ///< it ends; false: the default or a winner
  /// The decision won at the nearest size; `config` is 0 then.
  bool is_nearest = false;
  bool is_counted = false;   ///< false: the table has no place for the key, which stays untuned
  std::uint64_t number = 0;  ///< of the decision, counted from 0 for its key
  std::uint64_t epoch = 0;   ///< of the lease that answered; 0: none did
};

/// The leases that getCollInfo reads, and how many decisions every key has had. In static storage,
/// all zeros until used, and without a destructor: it outlives NCCL's plugins and every thread.
///
/// decide() may be called by any thread at any time; it takes no lock, allocates nothing and waits
/// for nothing. Everything else belongs to one thread, the owner, which calls it between entries of
/// the region. A decision that is under way meanwhile is safe, and counted before what the owner
/// does or after it.
class LeaseTable {
 public:
  static constexpr std::size_t capacity = 512;  ///< keys
  static constexpr std::size_t max_spans = 256;
  /// How many times smaller or larger a size may be whose winner another takes.
  static constexpr std::uint32_t nearest_within = 4;

  constexpr LeaseTable() noexcept = default;
  LeaseTable(const LeaseTable&) = delete;
  LeaseTable& operator=(const LeaseTable&) = delete;

  /// Counts one decision of the key, and gives what the committed leases say of it: the default
  /// where there is none. The first decision of a key makes a place for it. Once a key found none,
  /// no other key gets one: its count would begin at a later decision than on other ranks.
  ///
  /// With `takes_nearest`, a key for which no lease has begun is told what holds at the nearest
  /// size where one has, of the same communicator, function and kind. That is in lockstep, although
  /// nobody agreed on it: decisions of all keys of a communicator come in one order on all its
  /// ranks. So at this decision all ranks have made the same decisions of the other key, and the
  /// same lease answered the last of these. The key takes what that lease gives afterwards, never a
  /// trial. It does not matter whether this rank has a place for the key itself.
  [[nodiscard]] Grant decide(const LeaseKey& key, bool takes_nearest = false) noexcept;

  /// The place of a key in the table, or nowhere.
  class Seat {
    friend class LeaseTable;
    std::size_t place_ = capacity;
    std::uint64_t fingerprint_ = 0;
  };
  /// Makes a place for the key if it has none.
  [[nodiscard]] Seat seat_of(const LeaseKey& key) noexcept;
  /// The same as decide() of the key, without looking for it.
  /// @param seat as it is now for this key
  [[nodiscard]] Grant decide(const Seat& seat, const LeaseKey& key, bool takes_nearest) noexcept;
  /// Whether the seat is the key's still, and somewhere.
  [[nodiscard]] bool is_taken(const Seat& seat) const noexcept {
    return seat.place_ != capacity &&
           places_[seat.place_].key.load(std::memory_order_acquire) == seat.fingerprint_;
  }

  /// Why a lease cannot be prepared, which a rank has to say before anyone commits.
  enum class Refusal {
    None,
    /// No decision of the key was seen here, or there was no place for it.
    UnknownKey,
    TooLong,   ///< more than max_spans, an empty span, too many decisions
    OldEpoch,  ///< not above that of the lease before
    TooLate,   ///< its first decision was made already
    /// The lease before has not begun: it would be lost.
    NotBegun,
    Prepared,     ///< another is prepared for the key already
    DecisionNow,  ///< a decision of the key is under way in another thread; try again
  };

  /// Puts a lease where commit() will find it. No decision sees it yet.
  [[nodiscard]] Refusal prepare(const Lease& lease) noexcept;

  /// The outcome of commit() for an epoch's prepared leases.
  struct Committed {
    int leases = 0;
    /// The leases whose first decision was made since prepare(), or is being made. With any of
    /// these the invariant may be broken, and the region's collectives must not be tuned any more.
    /// They are committed all the same, which is the shortest way back to what the other ranks do.
    int late = 0;
  };

  /// Makes the prepared leases of an epoch those that decisions are answered from. Cannot fail: one
  /// store for each.
  Committed commit(std::uint64_t epoch) noexcept;

  /// How many decisions the key has had.
  [[nodiscard]] std::uint64_t decisions(const LeaseKey& key) const noexcept;

  /// Gives the places of a communicator back after its last decision. Those of a decision that is
  /// under way stay.
  void forget(std::uint64_t communicator) noexcept;

 private:
  static constexpr std::size_t places_to_look = 16;
  static constexpr std::size_t leases_of_key = 2;  ///< the last, and the one before or prepared

  struct StoredSpan {
    std::uint64_t end;  ///< counted from the lease's first decision
    Decision decision;
    std::uint32_t config;
  };

  /// A lease as decisions read it. Plain memory: it is written only while no decision can hold it.
  struct StoredLease {
    std::uint64_t epoch;
    std::uint64_t first_decision;
    std::uint32_t before;  ///< which lease holds until first_decision; 0: none
    std::uint32_t num_spans;
    Decision afterwards;
    std::uint32_t config_afterwards;
    std::array<StoredSpan, max_spans> spans;

    void answer(Grant& grant) const noexcept;
  };

  struct alignas(64) Place {
    std::atomic<std::uint64_t> key;      ///< fingerprint, or `free_place`, or `left_place`
    std::atomic<std::uint64_t> entered;  ///< decisions begun, which is the count
    std::atomic<std::uint64_t> left;     ///< decisions ended
    std::atomic<std::uint32_t> latest;   ///< which lease is the last; 0: none
    std::atomic<std::uint64_t> communicator;
    // Read by decisions of the same communicator, which come one after another.
    std::atomic<std::uint64_t> family;  ///< all of the key but size and communicator
    std::atomic<std::uint64_t> bytes;
    std::atomic<std::uint32_t>
        holding;  ///< what the last decision's lease gives afterwards, packed
    /// The decision that holds at the nearest size, packed; above it the number of changes then.
    std::atomic<std::uint64_t> nearest;
    // The owner's own.
    std::uint32_t prepared;  ///< which lease is prepared; 0: none
  };

  [[nodiscard]] std::size_t find(std::uint64_t fingerprint) const noexcept;
  [[nodiscard]] std::size_t find_or_claim(std::uint64_t fingerprint, const LeaseKey& key) noexcept;
  void hold(Place& place, const Decision& afterwards) noexcept;
  [[nodiscard]] std::uint32_t nearest_of(const LeaseKey& key) const noexcept;
  void take_nearest(const LeaseKey& key, Place* place, Grant& grant) noexcept;
  [[nodiscard]] StoredLease& stored(std::size_t place, std::uint32_t which) noexcept {
    return leases_[place][which - 1];
  }
  [[nodiscard]] static bool is_busy(const Place& place) noexcept;

  std::atomic<bool> is_full_{false};  ///< a key found no place
  /// How often it changed what holds of any key; 0: there never was a lease.
  std::atomic<std::uint32_t> changes_{0};
  std::array<Place, capacity> places_{};
  std::array<std::array<StoredLease, leases_of_key>, capacity> leases_{};
};

/// The text of a refusal in the rank log.
[[nodiscard]] std::string_view text_of(LeaseTable::Refusal refusal) noexcept;

}  // namespace contextune::collective
