#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/coordination/lockstep.hpp"
#include "intercept/ranks/rank_group.hpp"
#include "intercept/ranks/rank_place.hpp"

namespace contextune::intercept {

/// The other ranks of the job, for what the program says that it does with them. Any thread.
class JobRanks {
 public:
  virtual ~JobRanks() = default;

  /// This process among the ranks of the job, as far as that is known by now.
  [[nodiscard]] virtual RankPlace place() = 0;

  /// Tunes with the other ranks of an NCCL communicator, all of which must call it.
  /// @return a sentence where they do not meet within so many seconds; empty: they do
  [[nodiscard]] virtual std::string join(void* communicator, double seconds) = 0;

  /// This process will do something with other ranks of the job, or may: they are joined behind the
  /// scenes, and rank 0 can be asked from now on.
  virtual void expect() = 0;

  /// The ranks of the job that do something together. Waits for those of a communicator to ask for
  /// it as well, once, at most presync_timeout.
  /// @param communicator an ncclComm_t; null: all of the job do
  /// @param ranks        that do it
  [[nodiscard]] virtual RankGroup members(const void* communicator, std::uint32_t ranks) = 0;

  /// The same of ranks that the program names. Waits for nobody.
  [[nodiscard]] virtual RankGroup named(std::vector<std::uint32_t> ranks) = 0;

  /// Tells those who look for the ranks of a communicator of this process that it is one of them.
  /// Waits for nobody.
  virtual void announce_communicators() noexcept = 0;

  /// For steps that these ranks of the job make together. Null: they cannot, and `why` gets a
  /// clause.
  [[nodiscard]] virtual std::unique_ptr<Lockstep> lockstep(const std::string& of,
                                                           const RankGroup& group,
                                                           std::string& why) = 0;
};

}  // namespace contextune::intercept
