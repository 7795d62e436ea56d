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
};

/// What went over the links, and what rank 0's own code took for it.
struct Traffic {
  std::uint64_t messages = 0;      ///< that rank 0 sent or received
  std::uint64_t bytes = 0;         ///< of those, as frames
  double hub_cpu_seconds = 0;      ///< measured: CPU time inside Hub
  double wire_cpu_seconds = 0;     ///< measured: CPU time to encode, seal, open and decode frames
  double rank_0_busy_seconds = 0;  ///< simulated: of its control thread
};

/// A hub and its members, joined by real frames over a simulated network with a clock of its own.
/// Events happen in the order of their time; a seed decides the jitter, and with it everything but
/// the CPU times.
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
  enum class Kind : std::uint8_t { Says, ReachesHub, ReachesMember, HubSeesEnd, Dies, Stops, Tick };
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
  /// One rank, and its connection to rank 0.
  struct Rank {
    explicit Rank(std::uint32_t rank, std::uint32_t num_ranks);
    contextune::rank::Member member;
    contextune::rank::FrameWriter to_hub;
    contextune::rank::FrameReader at_hub;
    contextune::rank::FrameWriter to_member;
    contextune::rank::FrameReader at_member;
    std::vector<contextune::Topic> asked;
    double free_at = 0;         ///< its control thread
    double last_at_hub = 0;     ///< what it sent arrives in order
    double last_at_member = 0;  ///< what it is sent, too
    bool is_alive = true;
    bool is_connected = true;
  };

  void schedule(double at, Kind kind, std::uint32_t rank, std::vector<std::byte> frame = {});
  void schedule_tick(double after);
  void happen(Event event);
  void reach_hub(const Event& event);
  void reach_member(const Event& event);
  void dispatch(contextune::rank::Outbox from_member, contextune::rank::Outbox from_hub);
  void send_to_hub(std::uint32_t rank, contextune::rank::Outbox out);
  void send_to_member(std::uint32_t rank, const contextune::rank::Message& message);
  void look(std::uint32_t rank, double now);
  [[nodiscard]] contextune::rank::Message open(contextune::rank::FrameReader& reader,
                                               const std::vector<std::byte>& frame) const;
  [[nodiscard]] bool is_on_host_of_rank_0(std::uint32_t rank) const noexcept;
  [[nodiscard]] double latency_to(std::uint32_t rank);
  [[nodiscard]] double handling_of(std::size_t bytes) const noexcept;

  NetworkModel model_;
  std::mt19937_64 random_;
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
