#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <random>
#include <vector>

#include "rank/members/agreement_hub.hpp"
#include "rank/members/agreement_member.hpp"
#include "rank/members/agreement_relay.hpp"
#include "rank/members/relay_routes.hpp"
#include "rank/members/relay_spans.hpp"
#include "rank/wire/frame.hpp"

namespace bench {

/// The assumptions of a SimulatedStar. Times are seconds.
struct NetworkModel {
  std::uint32_t ranks_per_host = 8;
  double host_seconds = 5e-6;      ///< one way between two processes of a host
  double network_seconds = 20e-6;  ///< one way between two hosts
  double jitter_seconds = 5e-6;    ///< added to either, the mean of an exponential distribution
  double message_seconds = 4e-6;   ///< that a control thread takes to send or receive a message
  double kib_seconds = 2e-6;       ///< that it takes for each KiB of it besides
  double bytes_per_second = 100e9 / 8;  ///< of the link of rank 0's host, each way
  double tick_seconds = 0.02;           ///< between two looks of the hub at its deadlines
  /// Jobs of so many ranks have relays.
  std::uint32_t fewest_relayed_ranks = contextune::rank::RelaySpans::fewest_ranks;
};

/// What went over the links, and what rank 0's own code took for it.
struct Traffic {
  std::uint64_t messages = 0;      ///< that rank 0 sent or received
  std::uint64_t bytes = 0;         ///< of those, as frames
  std::uint64_t passed_on = 0;     ///< messages between ranks and their relays
  double hub_cpu_seconds = 0;      ///< measured: CPU time inside Hub
  double wire_cpu_seconds = 0;     ///< measured: CPU time to encode, seal, open and decode frames
  double rank_0_busy_seconds = 0;  ///< simulated: of its control thread
};

/// A hub, its relays and its members, joined by real frames over a simulated network with a clock
/// of its own. Ranks are attached to their relays from the beginning. Events happen in the order of
/// their time; a seed decides the jitter, and with it everything but the CPU times.
///
/// Each control thread does one thing after another. Rank 0 sends the messages of one event in the
/// order of the hub's outbox, as SocketStar does. Signs of life are left out.
class SimulatedStar {
 public:
  SimulatedStar(std::uint32_t num_ranks, const NetworkModel& model,
                contextune::rank::Deciders deciders, std::uint64_t seed);
  SimulatedStar(const SimulatedStar&) = delete;
  SimulatedStar& operator=(const SimulatedStar&) = delete;

  /// The rank speaks at that time.
  void say(double at, std::uint32_t rank, const contextune::Topic& topic, contextune::Payload part,
           double seconds);
  /// From now on the rank is occupied until it speaks on the topic.
  void occupied(std::uint32_t rank, const contextune::Topic& topic, double seconds);
  /// The rank's process ends at that time, and its host closes the connection.
  void kill(double at, std::uint32_t rank);
  /// The rank does nothing from then on, and its connection stays.
  void stand_still(double at, std::uint32_t rank);

  /// A rank was told the verdict on what it had said.
  using Told = std::function<void(std::uint32_t rank, const contextune::Topic& topic, double now,
                                  const contextune::Agreement& agreement)>;
  void on_verdict(Told told) { told_ = std::move(told); }

  /// Lets everything happen that is due by then.
  void run_until(double end);
  /// Lets everything happen until nothing is under way and the hub has nothing open.
  void run();

  [[nodiscard]] double now() const noexcept { return now_; }
  [[nodiscard]] const Traffic& traffic() const noexcept { return traffic_; }
  [[nodiscard]] const contextune::rank::Hub& hub() const noexcept { return hub_; }

 private:
  enum class Kind : std::uint8_t {
    Says,
    ReachesHub,
    ReachesMember,
    ReachesRelay,   ///< from the rank
    ReachesServed,  ///< the rank, from its relay
    HubSeesEnd,
    RelaySeesEnd,    ///< of the rank
    SeesEndOfRelay,  ///< the rank
    RelayTicks,
    Dies,
    Stops,
    Tick
  };
  struct Event {
    double at = 0;
    std::uint64_t number = 0;  ///< of two at one time the older comes first
    Kind kind = Kind::Tick;
    std::uint32_t rank = 0;
    std::vector<std::byte> frame;
    std::function<void(contextune::rank::Member&, contextune::rank::Outbox&)> says;
    bool operator<(const Event& other) const noexcept {
      return at != other.at ? at > other.at : number > other.number;
    }
  };
  /// One direction of a connection.
  struct Link {
    explicit Link(const contextune::rank::FrameOrigin& origin) : writer(origin), reader(origin) {}
    contextune::rank::FrameWriter writer;
    contextune::rank::FrameReader reader;
    double last_arrival = 0;  ///< what is sent arrives in order
  };
  /// One rank, and its connections to rank 0 and to its relay.
  struct Rank {
    explicit Rank(std::uint32_t rank, std::uint32_t num_ranks);
    contextune::rank::Member member;
    std::optional<contextune::rank::Relay> relay;  ///< if it is one
    Link to_hub;
    Link from_hub;
    Link to_relay;
    Link from_relay;
    std::vector<contextune::Topic> asked;
    double free_at = 0;  ///< its control thread
    bool is_alive = true;
    bool is_connected = true;
    bool is_attached = false;
    bool relay_ticks = false;
  };

  void schedule(double at, Kind kind, std::uint32_t rank, std::vector<std::byte> frame = {});
  void schedule_tick(double after);
  void happen(Event event);
  void die(const Event& event);
  void reach_hub(const Event& event);
  void reach_member(const Event& event);
  void reach_relay(const Event& event);
  void reach_served(const Event& event);
  void leave_relay(std::uint32_t rank);
  void give(std::uint32_t rank, contextune::rank::Message message);
  void dispatch(contextune::rank::Outbox from_member, contextune::rank::Outbox from_hub);
  void send_up(std::uint32_t rank, contextune::rank::Outbox out);
  void send_of_relay(std::uint32_t relay, contextune::rank::Outbox out);
  void send_to_hub(std::uint32_t rank, const contextune::rank::Message& message);
  void send_to_member(std::uint32_t rank, const contextune::rank::Message& message);
  /// Seals a message on the sender's control thread, and has it arrive.
  void send(std::uint32_t sender, Link& link, Kind kind, std::uint32_t rank,
            const contextune::rank::Message& message);
  void look(std::uint32_t rank, double now);
  [[nodiscard]] contextune::rank::Message open(Link& link,
                                               const std::vector<std::byte>& frame) const;
  [[nodiscard]] bool share_host(std::uint32_t a, std::uint32_t b) const noexcept;
  [[nodiscard]] double latency_between(std::uint32_t a, std::uint32_t b);
  [[nodiscard]] double handling_of(std::size_t bytes) const noexcept;

  NetworkModel model_;
  std::mt19937_64 random_;
  contextune::rank::RelaySpans spans_;
  contextune::rank::RelayRoutes routes_;
  contextune::rank::Hub hub_;
  std::vector<Rank> ranks_;
  std::priority_queue<Event> events_;
  std::uint64_t num_events_ = 0;
  double now_ = 0;
  double hub_free_at_ = 0;  ///< rank 0's control thread
  double link_out_free_at_ = 0;
  double link_in_free_at_ = 0;
  bool is_tick_scheduled_ = false;
  Traffic traffic_;
  Told told_;
};

}  // namespace bench
