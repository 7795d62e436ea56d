#pragma once

#include <cstddef>
#include <cstdint>

#include "collective/cell.hpp"
#include "collective/lease_table.hpp"
#include "intercept/program/settled_launches.hpp"
#include "preload/contextune_abi.h"

namespace contextune::intercept {

class LaunchRegion;

/// A collective outside of groups that the slow way found settled: as the program calls it, the
/// one decision that NCCL asked for meanwhile, and how that was answered.
struct alignas(64) SettledCollective {
  std::uint64_t version = 0;  ///< of settled_version; 0: there is none here
  LaunchRegion* region = nullptr;
  const void* communicator = nullptr;
  std::uint64_t count = 0;
  contextune_nccl_fn fn{};
  std::int32_t datatype = -1;
  std::int32_t op = -1;
  bool passes_launches = false;  ///< those that NCCL makes meanwhile are made as written

  std::int64_t tuner = -1;  ///< with `function` and `bytes` what a tuner is asked
  std::uint64_t bytes = 0;
  int function = 0;
  int ranks = 0;
  int nodes = 0;
  /// Whether it may be told `decision` depends on NCCL's table, which may be another each time.
  bool checks_exactness = false;
  collective::LeaseKey key;
  collective::LeaseTable::Seat seat;
  collective::Grant grant;        ///< what it was granted, in all but `number`
  collective::Decision decision;  ///< what that comes to: a winner of another size may not do

  /// Whether the same was granted again.
  [[nodiscard]] bool is_granted_as_before(const collective::Grant& now) const noexcept {
    return !now.is_trial && now.decision == grant.decision && now.config == grant.config &&
           now.is_nearest == grant.is_nearest;
  }
};

/// The settled collectives of one thread, kept as SettledLaunches keeps launches, and which of them
/// the call under way repeats. Decisions are counted in the lease table as ever; only finding out
/// whose they are is spared. Trivially destructible; not thread-safe.
class SettledCollectives {
 public:
  /// Null: go the slow way.
  [[nodiscard]] SettledCollective* find(const contextune_nccl_call& call,
                                        const LaunchRegion* region) noexcept {
    SettledCollective& known = collectives_[place_of(call)];
    const bool same = known.version == settled_version.load(std::memory_order_acquire) &&
                      known.region == region && known.communicator == call.comm &&
                      known.count == call.count && known.fn == call.fn &&
                      known.datatype == call.datatype && known.op == call.op;
    return same ? &known : nullptr;
  }
  /// @param settled with a version that was read before anything was found out about it
  void remember(const contextune_nccl_call& call, const SettledCollective& settled) noexcept;

  /// The call under way is one of them.
  void begin(const SettledCollective& settled, const contextune_nccl_call& call) noexcept {
    repeated_ = &settled;
    call_ = &call;
    has_decided_ = false;
  }
  /// It is no longer: it has ended, or goes the slow way from here on.
  void end() noexcept { repeated_ = nullptr; }
  /// Null: the call under way, if any, goes the slow way.
  [[nodiscard]] const SettledCollective* repeated() const noexcept { return repeated_; }
  [[nodiscard]] const contextune_nccl_call& call() const noexcept { return *call_; }
  [[nodiscard]] bool has_decided() const noexcept { return has_decided_; }
  void note_decision() noexcept { has_decided_ = true; }

  /// Whether a launch is NCCL's in such a call, and nothing has changed since that would look at
  /// it.
  [[nodiscard]] bool pass_launches() const noexcept {
    return repeated_ != nullptr && repeated_->passes_launches &&
           repeated_->version == settled_version.load(std::memory_order_acquire);
  }

 private:
  static constexpr std::size_t most = 32;

  [[nodiscard]] static std::size_t place_of(const contextune_nccl_call& call) noexcept {
    const auto handle = reinterpret_cast<std::uintptr_t>(call.comm);
    const std::uint64_t mixed =
        (handle ^ (call.count << 20U) ^ static_cast<std::uint64_t>(call.fn)) *
        0x9e3779b97f4a7c15ULL;
    return mixed >> 59U;
  }

  const SettledCollective* repeated_ = nullptr;
  const contextune_nccl_call* call_ = nullptr;
  bool has_decided_ = false;
  SettledCollective collectives_[most];
};

}  // namespace contextune::intercept
