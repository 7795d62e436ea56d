#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <contextune/error.hpp>

#include "core/agreement/replay_vote.hpp"
#include "core/coordination/lockstep.hpp"
#include "intercept/measuring/start_line.hpp"
#include "intercept/recording/recording.hpp"

namespace contextune::intercept {

/// The other ranks have not come, so nothing more is repeated that waits for them.
class RanksLost : public Error {
 public:
  using Error::Error;
};

/// The ranks that repeat a region together. A collective waits for the same one on all ranks of its
/// communicator, so each run is made by all of them or by none. The next step follows from what all
/// have found. Used by one thread; waits, with a deadline.
class ReplayRanks {
 public:
  /// The kind of the next run, on which ranks have to be of one mind.
  enum class Run : std::uint8_t { Trial, Pass };
  /// The findings of the ranks.
  struct Findings {
    bool right = true;                   ///< everywhere
    bool must_stop = false;              ///< on one of them
    std::vector<std::uint32_t> numbers;  ///< said by each
  };

  explicit ReplayRanks(std::unique_ptr<Lockstep> lockstep);

  /// Whether the visit that all have just made is repeated.
  [[nodiscard]] ReplayVerdict vote(const ReplayVote& vote);
  /// Before a run: all are ready for it, and go on as StartLine says.
  /// @throws RanksLost where they are not, on all ranks
  void await(Run run);
  /// After a run, or in place of one.
  /// @throws RanksLost on all ranks
  [[nodiscard]] Findings exchange(bool right, bool must_stop, std::uint32_t number = 0);
  void occupied(double seconds, std::string why) { lockstep_->occupied(seconds, std::move(why)); }
  void leave(const std::string& why) { lockstep_->leave(why); }

  [[nodiscard]] const Lockstep& lockstep() const noexcept { return *lockstep_; }

 private:
  [[noreturn]] void lost() const;
  [[nodiscard]] std::vector<Payload> meet(Payload said);

  const std::unique_ptr<Lockstep> lockstep_;
  StartLine line_;
};

/// The collectives of a recording that other ranks have to repeat as well.
/// @param refusal gets a sentence, if it cannot be told which they are
[[nodiscard]] std::vector<ReplayVote::Communicator> communicators_of(const Recording& recording,
                                                                     std::string& refusal);

}  // namespace contextune::intercept
