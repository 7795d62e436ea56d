#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rank/members/agreement_hub.hpp"
#include "rank/members/agreement_member.hpp"
#include "rank/members/agreement_relay.hpp"
#include "rank/members/relay_routes.hpp"
#include "rank/members/relay_spans.hpp"

/// Members, relays and a hub in one thread, with links that a seed orders: what is delivered next,
/// which rank dies, which link breaks and how much of what was sent still arrives.
class SimulatedRanks {
 public:
  SimulatedRanks(std::uint32_t num_ranks, std::uint64_t seed,
                 std::uint32_t fewest_relayed = contextune::rank::RelaySpans::fewest_ranks);

  /// From now on its relay passes on what the rank says, if it has one that lives.
  void attach(std::uint32_t rank);
  /// Breaks the connection between the rank and its relay.
  void cut_off_relay(std::uint32_t rank);

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
  /// Its process ends: all that it has sent still arrives, before its end.
  void leave(std::uint32_t rank);
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
  /// No rank was told that it is committed while another was told that it is aborted.
  [[nodiscard]] bool keeps_promise(const contextune::Topic& topic) const;
  [[nodiscard]] std::size_t num_topics_at_hub() const { return hub_.num_topics(); }
  /// Of all members together.
  [[nodiscard]] std::size_t num_topics_at_members() const;
  /// That have been delivered.
  [[nodiscard]] std::size_t num_messages() const { return num_messages_; }
  /// Of those, that rank 0 sent or received.
  [[nodiscard]] std::size_t num_hub_messages() const { return num_hub_messages_; }
  [[nodiscard]] std::uint64_t random() { return random_(); }

 private:
  enum class Kind : std::uint8_t {
    ToHub,
    ToMember,
    Ask,
    Tell,
    Unreachable,
    HubSeesEnd,
    MemberSeesEnd,
    ToRelay,
    FromRelay,
    RelaySeesEnd,
    SeesEndOfRelay
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
  void send_to_hub(std::uint32_t from, contextune::rank::Message message);
  void send_of_relay(std::uint32_t relay, contextune::rank::Outbox out);
  void take_at_hub(std::uint32_t from, contextune::rank::Message message);
  void take_of_hub(std::uint32_t at, contextune::rank::Message message);
  void give(std::uint32_t at, contextune::rank::Message message);
  void leave_relay(std::uint32_t rank);
  void stop_relaying(std::uint32_t relay);
  void send_of_hub(contextune::rank::Outbox out);
  void deliver(const Link& link, Item item);
  void end_links_of(std::uint32_t rank);
  void break_link(Kind kind, std::uint32_t rank, Kind end);
  void look();

  std::mt19937_64 random_;
  double now_ = 0;
  std::size_t num_messages_ = 0;
  std::size_t num_hub_messages_ = 0;
  contextune::rank::RelaySpans spans_;
  contextune::rank::RelayRoutes routes_;
  std::vector<std::optional<contextune::rank::Relay>> relays_;
  std::vector<bool> attached_;
  std::vector<bool> has_called_relay_;
  contextune::rank::Hub hub_;
  std::vector<contextune::rank::Member> members_;
  std::vector<bool> alive_;
  std::vector<bool> linked_;
  std::vector<bool> hidden_;
  bool loses_messages_ = true;  // where a link breaks
  std::map<Link, std::deque<Item>> links_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, contextune::Agreement> seen_;
  std::vector<std::pair<std::uint32_t, contextune::Topic>> asked_;
};

inline contextune::Topic topic_of(std::vector<std::uint32_t> ranks, std::uint64_t question = 1) {
  return {7, question, std::move(ranks)};
}
