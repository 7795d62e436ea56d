#pragma once

#include <cstdint>

#include "rank/wire/message.hpp"

namespace contextune::rank {

/// Which rank passes on the messages of which others. All ranks work it out for themselves.
///
/// Ranks that follow one another make a span, whose first rank is its relay: launchers number the
/// ranks of a host in a row, and a span holds whole hosts where both are powers of two. A job of N
/// ranks has spans of about the square root of N, so that rank 0 and each relay have as few
/// messages to handle as they can. Rank 0 needs none for its own span.
class RelaySpans {
 public:
  /// Fewer ranks than this agree sooner without a relay in between.
  static constexpr std::uint32_t fewest_ranks = 33;

  explicit RelaySpans(std::uint32_t num_ranks, std::uint32_t fewest = fewest_ranks) noexcept
      : fewest_(fewest) {
    if (num_ranks < fewest) return;
    while (std::uint64_t{length_} * length_ < num_ranks) length_ *= 2;
  }

  /// The rank's relay, which may be itself. 0: it has none.
  [[nodiscard]] std::uint32_t relay_of(std::uint32_t rank) const noexcept {
    return length_ == 1 ? 0 : rank - rank % length_;
  }
  [[nodiscard]] bool is_relay(std::uint32_t rank) const noexcept {
    return rank != 0 && relay_of(rank) == rank;
  }
  /// Whether relays pass on what is said about the topic: among few ranks, they would only delay
  /// it.
  [[nodiscard]] bool carry(const Topic& topic) const noexcept {
    return topic.ranks.size() >= fewest_;
  }

 private:
  std::uint32_t fewest_;
  std::uint32_t length_ = 1;  ///< of a span; 1: there are none
};

}  // namespace contextune::rank
