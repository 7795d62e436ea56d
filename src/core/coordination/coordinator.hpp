#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/coordination/rank_set.hpp"

namespace contextune {

/// The part that one rank says, or the decision that all are told. Opaque here.
using Payload = std::vector<std::byte>;

/// A question that a group of ranks decides together. Ranks mean the same question when all of it
/// is equal; each is asked once. If ranks name different ranks for one question of a group, it is
/// aborted for all of them, and the difference is said.
struct Topic {
  std::uint64_t group = 0;     ///< names the group among those of the job
  std::uint64_t question = 0;  ///< counts up within the group
  RankSet ranks;               ///< of the group, ascending, at least this one
  bool operator==(const Topic&) const = default;
};

/// How a question ended.
enum class Verdict : std::uint8_t {
  Open,       ///< not yet; only poll() says so
  Committed,  ///< every rank of the group has the decision, or will have it
  Aborted,    ///< no rank has it, and none will: all go on as if nothing had been asked
  /// Control was lost between the vote and the verdict, and no rank that is still alive knows it.
  /// Whoever has voted must neither act on the decision nor on its absence.
  Unknown,
};

struct Agreement {
  Verdict verdict = Verdict::Open;
  Payload decision;                 ///< the same bytes on every rank, if committed
  std::string why;                  ///< a sentence, unless committed or open
  std::uint32_t culprit = no_rank;  ///< the rank that it was for, where that is known
  double waited_seconds = 0;        ///< of this rank, inside wait()
  /// If committed: the time from this rank's part on until the last of the others had spoken. The
  /// rank's waiting beyond that is the cost of agreeing.
  double others_seconds = 0;
  /// While Open: for so long the coordinating rank waits for an occupied rank, as heard since it
  /// was asked last. 0: nothing was heard.
  double granted_seconds = 0;

  static constexpr std::uint32_t no_rank = ~0U;
};

/// How ranks agree: each says something, one decides from what all have said, and either every rank
/// gets the decision or none does. A port; what is agreed on is the caller's matter.
///
/// The promise: if one rank sees `Committed`, no rank sees `Aborted` for that topic, and the other
/// way round, whatever is lost and whoever ends. It holds because a rank that has voted asks those
/// that are left when it loses control, and says `Unknown` rather than guess.
///
/// Rank 0 coordinates every topic, those of groups that it is not in as well. A rank that is lost
/// stays lost: whatever it is part of from then on is aborted.
///
/// Threads: any that cannot be cancelled meanwhile; calls for different topics do not wait for one
/// another. No call throws, none but wait() blocks, and nothing is done in the destructor that
/// takes longer than closing sockets.
class Coordinator {
 public:
  /// Makes the decision from what the ranks of the topic have said, in their order. Runs once in
  /// the job, on rank 0: in say() if there is one rank, else on the coordinator's own thread. That
  /// thread has nothing else to do meanwhile (the others must not take it for dead).
  /// May keep what it has decided, and must look at nothing else, nor at anything that is destroyed
  /// when the process ends: it may run then. An empty payload refuses: the topic is aborted with
  /// `why`.
  using Decide =
      std::function<Payload(const Topic& topic, std::span<const Payload> said, std::string& why)>;

  virtual ~Coordinator() = default;

  [[nodiscard]] virtual std::uint32_t rank() const noexcept = 0;
  [[nodiscard]] virtual std::uint32_t num_ranks() const noexcept = 0;

  /// Says this rank's part; the answer is fetched by poll or wait.
  /// @param kind    which of the deciders, known to all ranks under the same number
  /// @param seconds after which the coordinating rank aborts for the ranks that have not spoken;
  ///                counted from the first rank that spoke
  virtual void say(const Topic& topic, std::uint32_t kind, Payload part,
                   double seconds) noexcept = 0;

  /// The verdict so far. Committed, Aborted and Unknown are final and can be asked for once;
  /// before this rank has spoken, and after that one time, it is Open.
  [[nodiscard]] virtual Agreement poll(const Topic& topic) noexcept = 0;
  /// Waits for it, at most so long, or until more time is granted: then `Open`, and this rank's
  /// vote may still be counted unless it withdraws. Returns at once where poll() has nothing to
  /// wait for.
  [[nodiscard]] virtual Agreement wait(const Topic& topic, double seconds) noexcept = 0;

  /// Takes this rank's part back, or says that none will come: the topic is aborted, here at once.
  /// Nothing if it has voted already: then the verdict has to be waited for.
  virtual void withdraw(const Topic& topic, std::string why) noexcept = 0;

  /// Until it speaks on the topic, this rank is at something that takes a while: others that would
  /// give it up are told, and wait for so long instead. Costs nothing unless they have to ask.
  /// @param why a clause, for them: "it is ..."
  // NOLINTNEXTLINE(performance-unnecessary-value-param): kept by who overrides it
  virtual void occupied(const Topic& /*topic*/, double /*seconds*/, std::string /*why*/) noexcept {}

  /// From now on until disengage() with the same ranks, this rank is at something with those ranks
  /// that takes a while. Others that would give it up on topics of other ranks are told, and wait.
  /// The two are called in pairs, which may be nested.
  /// @param why a clause, for them: "it is ..."
  // NOLINTNEXTLINE(performance-unnecessary-value-param): the same
  virtual void engage(const std::vector<std::uint32_t>& /*ranks*/, std::string /*why*/) noexcept {}
  virtual void disengage(const std::vector<std::uint32_t>& /*ranks*/) noexcept {}

  /// Why this rank cannot agree on anything any more; empty: it can. Final.
  [[nodiscard]] virtual std::string lost() const = 0;
};

}  // namespace contextune
