#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rank/members/agreement_hub.hpp"
#include "rank/members/agreement_member.hpp"

/// Members and a hub in one thread, with links that a seed orders: what is delivered next, which
/// rank dies, which link breaks and how much of what was sent still arrives.
class SimulatedRanks {
 public:
  SimulatedRanks(std::uint32_t num_ranks, std::uint64_t seed);

  void say(std::uint32_t rank, const contextune::Topic& topic, double seconds = 10);
  void withdraw(std::uint32_t rank, const contextune::Topic& topic);
  void occupied(std::uint32_t rank, const contextune::Topic& topic, double seconds);
  void engage(std::uint32_t rank, const std::vector<std::uint32_t>& with);
  void disengage(std::uint32_t rank, const std::vector<std::uint32_t>& with);
  /// Delivers one message of a random link. False: none is under way.
  bool step();
  /// Delivers up to so many.
  void steps(std::uint64_t count);
  /// Delivers all there is, and lets every deadline pass.
  void settle();
  void pass_time(double seconds);
  void kill(std::uint32_t rank);
  /// From now on it does nothing, and its connections stay.
  void stand_still(std::uint32_t rank) { alive_[rank] = false; }
  /// Breaks the connection between the rank and rank 0.
  void cut(std::uint32_t rank);
  /// From now on nobody can call this rank, though it lives.
  void hide(std::uint32_t rank) { hidden_[rank] = true; }

  [[nodiscard]] bool is_alive(std::uint32_t rank) const { return alive_[rank]; }
  /// What the rank was told; Open: nothing yet.
  [[nodiscard]] contextune::Agreement seen(std::uint32_t rank,
                                           const contextune::Topic& topic) const;
  /// What its ranks were told, each once.
  [[nodiscard]] std::set<contextune::Verdict> verdicts(const contextune::Topic& topic) const;
  [[nodiscard]] std::size_t num_topics_at_hub() const { return hub_.num_topics(); }
  /// That have been delivered.
  [[nodiscard]] std::size_t num_messages() const { return num_messages_; }
  [[nodiscard]] std::uint64_t random() { return random_(); }

 private:
  enum class Kind : std::uint8_t {
    ToHub,
    ToMember,
    Ask,
    Tell,
    Unreachable,
    HubSeesEnd,
    MemberSeesEnd
  };
  struct Link {
    Kind kind;
    std::uint32_t a;  // the member's rank; for asks, who asks
    std::uint32_t b;  // for asks, who is asked
    auto operator<=>(const Link&) const = default;
  };
  struct Item {
    Kind kind;
    contextune::rank::Message message;
  };

  void send(std::uint32_t from_member, contextune::rank::Outbox out);
  void send_of_hub(contextune::rank::Outbox out);
  void deliver(const Link& link, Item item);
  void break_link(Kind kind, std::uint32_t rank, Kind end);
  void look();

  std::mt19937_64 random_;
  double now_ = 0;
  std::size_t num_messages_ = 0;
  contextune::rank::Hub hub_;
  std::vector<contextune::rank::Member> members_;
  std::vector<bool> alive_;
  std::vector<bool> linked_;
  std::vector<bool> hidden_;
  std::map<Link, std::deque<Item>> links_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, contextune::Agreement> seen_;
  std::vector<std::pair<std::uint32_t, contextune::Topic>> asked_;
};

inline contextune::Topic topic_of(std::vector<std::uint32_t> ranks, std::uint64_t question = 1) {
  return {7, question, std::move(ranks)};
}
