#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "rank/meeting/host_identity.hpp"
#include "rank/meeting/rendezvous.hpp"
#include "rank/wire/listener.hpp"

namespace contextune::rank {

/// How a rank comes to a meeting.
struct Standing {
  /// Why it does not take part, as a phrase that follows "rank 2 does not take part: "; empty: it
  /// does.
  std::string refusal;
  std::uint64_t job = 0;        ///< whose ranks it agrees with already; 0: none
  std::uint32_t job_rank = 0;   ///< which of them it is
  std::uint32_t job_ranks = 0;  ///< how many there are
};

/// The meeting of ranks that can gather a few bytes of each just once, as those of a communicator
/// can. Each rank writes its block, all blocks are gathered in the order of ranks, and every rank
/// reads the same from them. On one host they meet at a Unix socket that a random number names;
/// past one host at TCP, where rank 0 listens already before it tells the port. Rank 0 draws the
/// secret and puts it in its block, so the blocks must go where only the job's ranks see them. If a
/// rank does not take part, none does, and all know why. Ranks that are all ranks of one job
/// already need no meeting even then, which is as good.
class GatheredRendezvous {
 public:
  static constexpr std::size_t block_bytes = 512;
  using Block = std::array<std::byte, block_bytes>;

  GatheredRendezvous(std::uint32_t rank, std::uint32_t num_ranks, Standing standing,
                     HostIdentity host = identify_host());

  [[nodiscard]] const Block& block() const noexcept { return block_; }

  /// @param blocks of all ranks, one after the other
  /// @return without an address if nobody needs to meet: one rank, or the same job already
  [[nodiscard]] Rendezvous read(std::span<const std::byte> blocks);

 private:
  void write(Standing standing);

  std::uint32_t rank_;
  std::uint32_t num_ranks_;
  HostIdentity host_;
  std::shared_ptr<Listener> listener_;  ///< of rank 0
  Block block_{};
};

}  // namespace contextune::rank
