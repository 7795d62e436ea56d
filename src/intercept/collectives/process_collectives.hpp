#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "collective/collective_calls.hpp"
#include "collective/collective_space.hpp"
#include "collective/lease_table.hpp"
#include "intercept/collectives/collective_regions.hpp"
#include "intercept/memory/process_memory.hpp"

namespace contextune::intercept {

class LaunchRegion;
class ReplayGate;
class SettledCollectives;

/// A decision that NCCL asked for during the call that its thread is in.
struct DecisionMade {
  collective::LeaseKey key;
  collective::Grant grant;
  std::uint64_t communicator = 0;  ///< the same on all its ranks; 0: not told
  const void* handle = nullptr;    ///< the program's; null: not known
  int ranks = 0;
  int nodes = 0;
  collective::CellSet legal;
  std::optional<collective::Cell> default_cell;
  bool was_refused = false;  ///< what it was told is not legal in this call, so the default ran
  /// The region, if there is one, has a site for it: nothing is said of cells again.
  bool is_described = false;
  std::optional<collective::Cell> ran;  ///< absent: nothing is known of it
  bool is_first_use = false;            ///< of that cell on the communicator: it may have connected
  std::size_t connection_bytes = 0;     ///< of device memory that came in the call, then
};

/// The decisions that this process tells NCCL through its tuner plugin, and their outcome. Finds
/// out which decision is whose, counts decisions, and holds calls back that must not be made yet.
/// The process has a single one, never destroyed. Any thread; only begin() may wait, outside of
/// NCCL.
class ProcessCollectives final : public collective::CollectiveDecider {
 public:
  ProcessCollectives() = default;
  ProcessCollectives(const ProcessCollectives&) = delete;
  ProcessCollectives& operator=(const ProcessCollectives&) = delete;

  /// Before any decision is made.
  /// @param memory what this process has of the device; outlives this. Null: that is not known
  /// @param gate   keeps the program's threads out of NCCL while it is closed; outlives this. Null:
  ///               nothing does
  void prepare(collective::CollectiveSpace space, const ProcessMemory* memory, ReplayGate* gate) {
    space_ = std::move(space);
    memory_ = memory;
    gate_ = gate;
  }
  [[nodiscard]] const collective::CollectiveSpace& space() const noexcept { return space_; }
  [[nodiscard]] CollectiveRegions& regions() noexcept { return regions_; }
  /// Whether a region has called NCCL for that.
  [[nodiscard]] bool was_seen(collective::Function function) const noexcept {
    return (seen_.load(std::memory_order_relaxed) & bit_of(function)) != 0;
  }
  /// Whether any thread is inside a call of NCCL that does something.
  [[nodiscard]] bool any_under_way() const noexcept;
  /// The cells that a communicator has used.
  /// @param context LeaseKey::communicator
  [[nodiscard]] collective::CellSet connected(std::uint64_t context) const noexcept {
    return collective::CellSet(used_[slot_of_context(context)].load(std::memory_order_relaxed));
  }

  /// The program calls NCCL.
  /// @param region   which the call belongs to; null: none
  /// @param counts   it belongs to the entry that may be a pass
  /// @param captured it goes into a graph, which is so on all ranks alike
  void begin(const contextune_nccl_call& call, LaunchRegion* region, bool counts,
             bool captured) noexcept;
  /// @param may_settle nothing that it was looked at for was missed by what settled_version tells
  /// @param passes_launches NCCL's launches meanwhile would be made as written
  void end(const contextune_nccl_call& call, bool may_settle, bool passes_launches) noexcept;

  // The same for a call that the thread has made before, when all was settled. It is under way for
  // all others to see, and counts its decision; nothing else is known of it.
  /// @return false: nothing was done, and begin() is due
  [[nodiscard]] bool begin_settled(const contextune_nccl_call& call, LaunchRegion* region,
                                   SettledCollectives& of_thread) noexcept;
  /// @return whether the question was answered, as decide() answers; absent: decide() is due
  [[nodiscard]] std::optional<bool> decide_settled(const collective::TunerQuestion& question,
                                                   SettledCollectives& of_thread) noexcept;
  /// @return false: it went the slow way in the end, and end() is due
  [[nodiscard]] bool end_settled(SettledCollectives& of_thread) noexcept;

  [[nodiscard]] bool decide(const collective::TunerQuestion& question) noexcept override;
  void forget(std::int64_t tuner) noexcept override;

  /// Whether this thread is inside a call of NCCL, and what was decided in it so far.
  [[nodiscard]] static bool is_inside() noexcept;
  [[nodiscard]] static std::span<const DecisionMade> made() noexcept;

  // For RegionCollectives.
  [[nodiscard]] static std::uint64_t decisions(const collective::LeaseKey& key) noexcept;
  /// Whether every call that could make decisions for the communicator has ended, and all that
  /// were made are counted under keys that all ranks use.
  [[nodiscard]] bool is_sound(const collective::LeaseKey& key, const void* handle) const noexcept;
  /// @return why not; empty: it holds from now on
  [[nodiscard]] std::string commit(const collective::Lease& lease);

 private:
  static constexpr std::size_t num_slots = 64;  ///< that communicators share
  static constexpr auto most_contexts =
      static_cast<std::size_t>(collective::CollectiveCalls::max_tuners);

  /// In a cache line of its own: each communicator has its thread.
  struct alignas(64) CallsUnderWay {
    std::atomic<int> count{0};
  };

  static std::uint32_t bit_of(collective::Function function) noexcept {
    return 1U << static_cast<unsigned>(function) % 32U;
  }
  static std::size_t slot_of_context(std::uint64_t context) noexcept {
    return static_cast<std::size_t>((context - 1) % most_contexts);  // of live ones each its own
  }
  /// @return whether the communicator never used that cell before
  bool use(std::uint64_t context, collective::Cell cell) noexcept;

  /// Whether this thread is inside a call that was not shown.
  [[nodiscard]] static bool is_in_message() noexcept;
  void enter(const contextune_nccl_call& call, int step) noexcept;
  /// begin() of a call that the others see already.
  void start(const contextune_nccl_call& call, LaunchRegion* region, bool counts,
             bool captured) noexcept;
  /// The settled call under way is not what it was: from here on it goes the slow way.
  void unsettle(SettledCollectives& of_thread) noexcept;
  /// Whether the result stays what NCCL's own choice would have made of it.
  [[nodiscard]] bool is_exact(const collective::Decision& decision, std::uint8_t kind,
                              const collective::TunerQuestion& question) const noexcept;
  void await_permission(const contextune_nccl_call& call) noexcept;
  /// Shows an exchange between all ranks, of which NCCL asks nobody, as if it were a decision.
  void show_exchange() noexcept;
  void confuse(std::uint64_t context) noexcept {
    confused_[slot_of_context(context)].store(context, std::memory_order_seq_cst);
  }

  collective::CollectiveSpace space_;
  std::array<CallsUnderWay, num_slots> inside_{};
  /// Contexts about which NCCL asked what cannot be told to be one key on all ranks; each in its
  /// slot.
  std::array<std::atomic<std::uint64_t>, most_contexts> confused_{};
  std::atomic<int> others_under_way_{0};  ///< calls that are not of one communicator alone
  ReplayGate* gate_ = nullptr;
  const ProcessMemory* memory_ = nullptr;
  std::array<std::atomic<std::uint32_t>, most_contexts> used_{};  ///< cells, by context
  std::atomic<std::uint32_t> seen_{0};                            ///< functions, in regions
  std::mutex owner_;                                              ///< of the lease table
  CollectiveRegions regions_;
};

/// The one of this process.
[[nodiscard]] ProcessCollectives& process_collectives() noexcept;

}  // namespace contextune::intercept
