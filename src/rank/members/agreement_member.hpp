#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "rank/members/relay_spans.hpp"
#include "rank/wire/message.hpp"

namespace contextune::rank {

/// A rank's side of agreeing: what it has said, whether it has voted, what came of it. It has no
/// sockets, no clock and no thread: messages go in and out, time is told. Not thread-safe.
///
/// A rank that has not voted may go back on its own, because nothing is committed without its vote.
/// A rank that has voted may not: it waits for the hub's verdict, and if it loses the hub asks the
/// other ranks of the topic. A rank that knows the verdict tells it. A rank that has not voted
/// refuses for good, which makes the verdict aborted. If all that can be reached have voted and
/// know no more, the verdict is unknown.
class Member {
 public:
  /// @param recovery_seconds for which the others are asked at most
  Member(std::uint32_t rank, std::uint32_t num_ranks, double recovery_seconds)
      : rank_(rank), num_ranks_(num_ranks), recovery_seconds_(recovery_seconds) {}

  void say(const Topic& topic, std::uint32_t kind, Payload part, double seconds, Outbox& out);
  void withdraw(const Topic& topic, std::string why, Outbox& out);
  /// Notes what it is at until it speaks on that topic.
  void occupied(const Topic& topic, double seconds, std::string why);
  /// It is at something with those ranks, until the same is said again: see Coordinator.
  void engage(const RankSet& ranks, std::string why, Outbox& out);
  void disengage(const RankSet& ranks, Outbox& out);
  /// The verdict so far; a final one is given once.
  [[nodiscard]] Agreement poll(const Topic& topic);
  /// Whether it is final and not yet given, without giving it.
  [[nodiscard]] bool is_settled(const Topic& topic) const;
  /// Whether the hub has granted more time since poll() was last asked.
  [[nodiscard]] bool has_patience(const Topic& topic) const;
  void add_waited(const Topic& topic, double seconds);

  /// Takes what the hub sent. Returns what was wrong with it: the hub is then not to be trusted.
  [[nodiscard]] std::string receive(Message message, Outbox& out);
  /// The relay that passed messages about large topics on is gone, and the hub knows: says again
  /// what the hub may not have.
  void repeat(Outbox& out);
  /// Whether it said something on the topic that waits for an answer. If the hub asks for it, a
  /// relay keeps it back.
  [[nodiscard]] bool waits_for_answer(const Topic& topic) const;
  /// The hub is gone, for good.
  /// @param relayed of a rank that is attached: its relay may still pass on what the hub said about
  ///        topics that these carry, until relay_ended(). Null: it is not
  void lose_hub(std::string why, double now, Outbox& out, const RelaySpans* relayed = nullptr);
  void relay_ended() { unreachable(relay_stream); }
  [[nodiscard]] const std::string& lost() const noexcept { return lost_; }

  /// The answer for a rank that lost the hub.
  [[nodiscard]] Message asked(std::uint32_t by, const Topic& topic, Outbox& out);
  /// The answer of a rank that was asked.
  void told(std::uint32_t by, const Message& answer);
  /// A rank that was to be asked cannot be.
  void unreachable(std::uint32_t peer);
  void tick(double now, Outbox& out);
  /// Topics that are remembered.
  [[nodiscard]] std::size_t num_topics() const noexcept { return entries_.size(); }
  /// Whether others are being asked.
  [[nodiscard]] bool is_asking() const noexcept;

 private:
  // In the place of a rank that is asked: what its relay has still to pass on.
  static constexpr std::uint32_t relay_stream = Agreement::no_rank;

  enum class State : std::uint8_t { Said, Voted, Committed, Aborted, Unknown };
  enum class Answer : std::uint8_t { NotAsked, Outstanding, Waiting, None };
  struct Entry {
    State state = State::Said;
    bool said = false;  // by this rank: somebody may fetch it
    bool fetched = false;
    bool done = false;  // nobody will ask for it any more
    bool acknowledged = false;
    Message say;  // until the decision is here, in case that it has to be repeated
    Payload decision;
    std::string why;
    std::uint32_t culprit = Agreement::no_rank;
    double waited_seconds = 0;
    double others_seconds = 0;
    double granted_seconds = 0;
    std::map<std::uint32_t, Answer> answers;  // while others are asked
    double ask_until = 0;
    double ask_again = 0;
    std::size_t num_to_ask = 0;  // the next time
  };
  using Entries = std::map<Topic, Entry, TopicLess>;

  static bool is_final(const Entry& entry) noexcept {
    return entry.state != State::Said && entry.state != State::Voted;
  }
  static void commit(Entry& entry);
  static void abort(Entry& entry, std::string why, std::uint32_t culprit);
  void start_asking(const Topic& topic, Entry& entry, double now, bool may_hear, Outbox& out);
  void ask_more(const Topic& topic, Entry& entry, Outbox& out) const;
  static void settle_if_nobody_knows(Entry& entry);
  void send_hub(MessageType type, const Topic& topic, Outbox& out, std::string why = {});
  std::string take_verdict(const Message& message, Outbox& out);
  /// Null: nothing keeps it from that topic.
  [[nodiscard]] const std::string* engaged_elsewhere(const Topic& topic) const;
  static void send_occupied(const Topic& topic, double seconds, const std::string& why,
                            Outbox& out);

  std::uint32_t rank_;
  std::uint32_t num_ranks_;
  double recovery_seconds_;
  struct Occupation {
    Topic topic;
    double seconds = 0;
    std::string why;
  };

  std::string lost_;
  Entries entries_;
  std::map<std::uint64_t, Occupation> occupations_;  // by group
  struct Engaged {
    int times = 0;
    std::string why;
  };
  std::map<RankSet, Engaged> engaged_;  // by the ranks that it is with
  /// Topics that it was asked about and has not spoken on; true: others wait because it is engaged.
  std::map<Topic, bool, TopicLess> inquiries_;
};

}  // namespace contextune::rank
