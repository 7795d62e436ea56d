#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rank/wire/message.hpp"

namespace contextune::rank {

/// The deciders, by kind.
using Deciders = std::map<std::uint32_t, Coordinator::Decide>;

/// Runs a decider; one that is missing or throws aborts.
[[nodiscard]] Payload decide(const Deciders& deciders, std::uint32_t kind, const Topic& topic,
                             std::span<const Payload> said, std::string& why) noexcept;

/// The coordinating side, on rank 0: collects what the ranks of a topic say, has it decided,
/// collects votes, gives the verdict, and remembers it until every rank has it. Like Member: no
/// sockets, clock or thread. Not thread-safe.
///
/// It commits only when every rank of the topic has voted, and forgets what was committed only when
/// every rank has acknowledged it. Thus what it does not know was not committed.
class Hub {
 public:
  /// @param vote_seconds how long the votes may take at most, if those who wait have so much time
  /// @param num_ranks    of the job, by which the number of open topics is bounded
  Hub(Deciders deciders, double vote_seconds, std::uint32_t num_ranks)
      : deciders_(std::move(deciders)),
        vote_seconds_(vote_seconds),
        most_topics_(std::max(max_open_topics, most_topics_of_rank * num_ranks)),
        waited_(num_ranks, -std::numeric_limits<double>::infinity()) {}

  /// Takes what a rank sent, or a relay for several. Returns what was wrong with it: the rank is
  /// then not to be trusted.
  [[nodiscard]] std::string receive(std::uint32_t from, Message message, double now, Outbox& out);
  /// What was said to that rank may be lost: says it again.
  void repeat(std::uint32_t rank, Outbox& out);
  /// The rank is gone, for good.
  void lose(std::uint32_t rank, const std::string& why, Outbox& out);
  /// The answer for a rank that had lost its connection: always final.
  [[nodiscard]] Message asked(std::uint32_t by, const Topic& topic, Outbox& out);
  void tick(double now, Outbox& out);
  /// This process stops: aborts what is open.
  void stop(const std::string& why, Outbox& out);

  /// Whether something is open that a deadline ends.
  [[nodiscard]] bool has_open_topics() const noexcept { return num_open_ > 0; }
  /// Topics that are remembered.
  [[nodiscard]] std::size_t num_topics() const noexcept { return entries_.size(); }

 private:
  // Each rank asks questions of its own as well, when a job starts all of them at a time.
  static constexpr std::size_t most_topics_of_rank = 4;

  enum class State : std::uint8_t { Collecting, Voting, Committed, Aborted };
  static constexpr double not_said = -1;
  struct Entry {
    State state = State::Collecting;
    std::uint32_t kind = 0;
    // By the place of a rank among the topic's.
    std::vector<Payload> parts;
    std::vector<double> said_at;
    std::vector<bool> voted;
    std::vector<bool> aware;  // they have acknowledged its verdict
    std::size_t num_said = 0;
    std::size_t num_voted = 0;
    std::size_t num_unaware = 0;  // that have to acknowledge before it is forgotten
    Payload decision;             // to be voted on
    double spoken_at = 0;         // by all
    double deadline = 0;
    double seconds = 0;  // as the first rank said
    double until = 0;    // it waits, if nobody is occupied
    double vote_seconds = 0;
    bool inquired = false;
    double vote_inquiry = 0;  // when those are asked that have not voted; 0: they were
    double inquired_at = 0;   // for the first time; 0: it was not
    double answers_due = 0;   // of those that were inquired
    std::map<std::uint32_t, std::string> occupied;  // and why, of ranks that had not spoken
    std::size_t num_silent_occupied = 0;            // of those, that still have not
    bool owes_patience = false;                     // those who wait do not know its deadline
    std::string why;
    std::uint32_t culprit = Agreement::no_rank;
  };
  using Entries = std::map<Topic, Entry, TopicLess>;

  static bool is_open(const Entry& entry) noexcept {
    return entry.state == State::Collecting || entry.state == State::Voting;
  }
  [[nodiscard]] bool is_full_without(const Topic& topic) const;
  [[nodiscard]] Entries::iterator open_topic(const Topic& topic);
  [[nodiscard]] Entries::iterator same_question(Entries::iterator place);
  static bool has_said(const Topic& topic, const Entry& entry, std::uint32_t rank);
  [[nodiscard]] RankSet present(const Topic& topic) const;
  void take_parts(const RankSet& from, Message&& message, double now, Outbox& out);
  void take_votes(const RankSet& from, const Topic& topic, Outbox& out);
  [[nodiscard]] std::string take_acknowledgements(const RankSet& from, const Topic& topic,
                                                  Outbox& out);
  /// Says to those ranks what comes next for them.
  static void say_again(const RankSet& to, const Topic& topic, const Entry& entry, Outbox& out);
  static RankSet late_ranks(const Topic& topic, const Entry& entry);
  static void inquire(const Topic& topic, const Entry& entry, Outbox& out);
  static void tell_patience(const Topic& topic, Entry& entry, double now, Outbox& out);
  void be_patient(std::uint32_t from, const Message& message, double now, Outbox& out);
  [[nodiscard]] std::set<const Entry*> held_up() const;
  [[nodiscard]] bool has_just_waited(std::uint32_t rank, const Entry& elsewhere) const;
  static Message patience_of(const Topic& topic, double seconds);
  void propose(const Topic& topic, Entry& entry, double now, Outbox& out);
  static Message proposal_of(const Topic& topic, const Entry& entry, const RankSet& to);
  void give_verdict(const Topic& topic, Entry& entry, State state, Outbox& out);
  void abort(const Topic& topic, Entry& entry, std::string why, std::uint32_t culprit, Outbox& out);
  static Message verdict_of(const Topic& topic, const Entry& entry);
  void forget_if_known(Entries::iterator place, Outbox& out);

  Deciders deciders_;
  double vote_seconds_;
  std::size_t most_topics_;
  double now_ = 0;                             // as it was told last
  std::map<std::uint32_t, std::string> gone_;  // and why
  std::vector<double> waited_;                 // by rank: when a wait of it ended last
  Entries entries_;
  std::size_t num_open_ = 0;  // of them
};

}  // namespace contextune::rank
