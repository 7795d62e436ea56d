#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "preload/contextune_abi.h"
#include "rank/meeting/rendezvous.hpp"
#include "rank/meeting/unique_id.hpp"

namespace contextune::intercept {

/// The communicator that is the job where no variable declares one: the first of several ranks that
/// the program makes from an ncclUniqueId. Serialised by the caller, but for may_meet().
class FoundingCommunicator {
 public:
  /// The program makes a communicator of several ranks from an ncclUniqueId.
  /// @param founds it may be the job: no variable declares one
  /// @return whether it is the first
  bool see(const contextune_nccl_call& call, bool founds) noexcept;

  [[nodiscard]] bool is_known() const noexcept { return unique_id_ != 0; }
  /// 0: it is not known.
  [[nodiscard]] std::uint32_t ranks() const noexcept { return ranks_; }
  /// This process's own among them.
  [[nodiscard]] std::uint32_t rank() const noexcept { return rank_; }
  /// Whether the program makes communicators that do not come of it.
  [[nodiscard]] bool has_foreign() const noexcept { return has_foreign_; }

  /// Adds its id to the rendezvous of a launcher whose ranks are the same.
  [[nodiscard]] rank::Rendezvous with_id(const rank::Rendezvous& launched) const;
  /// Where its ranks meet, once. Absent: not known yet, already told, or it founds no job, as
  /// why_alone() says then.
  [[nodiscard]] std::optional<rank::Rendezvous> meet();
  /// Whether meet() may have something to tell. Any thread.
  [[nodiscard]] bool may_meet() const noexcept { return may_meet_.load(std::memory_order_relaxed); }
  /// A clause, once it is known that its ranks cannot meet.
  [[nodiscard]] const std::string& why_alone() const noexcept { return why_alone_; }

 private:
  std::uint64_t unique_id_ = 0;  ///< 0: there is none yet
  std::uint32_t ranks_ = 0;
  std::uint32_t rank_ = 0;
  std::array<std::byte, rank::unique_id_bytes> first_id_{};
  std::uint32_t here_ = 0;  ///< of its ranks, in this process
  bool has_foreign_ = false;
  std::string why_alone_;
  std::atomic<bool> may_meet_{false};
};

}  // namespace contextune::intercept
