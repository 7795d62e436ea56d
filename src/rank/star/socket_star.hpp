#pragma once

#include <asio.hpp>
#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "rank/members/agreement_hub.hpp"
#include "rank/members/agreement_relay.hpp"
#include "rank/members/relay_routes.hpp"
#include "rank/members/relay_spans.hpp"
#include "rank/members/shared_member.hpp"
#include "rank/star/callers.hpp"
#include "rank/star/doorbell.hpp"
#include "rank/star/hub_connection.hpp"
#include "rank/star/peer_calls.hpp"
#include "rank/star/relay_links.hpp"
#include "rank/star/roster.hpp"
#include "rank/star/socket_coordinator.hpp"
#include "rank/wire/connection.hpp"
#include "rank/wire/tick_timer.hpp"

namespace contextune::rank {

/// Carries messages between this rank's member and the hub on rank 0. All but the functions marked
/// otherwise belong to the control thread, which runs run().
class SocketStar final : public ConnectionOwner {
 public:
  /// On the control thread, and so is its end.
  /// @param own_descriptors that thread has some that others do not
  SocketStar(const SocketSettings& settings, Deciders deciders, bool own_descriptors);
  SocketStar(const SocketStar&) = delete;
  SocketStar& operator=(const SocketStar&) = delete;
  ~SocketStar() = default;

  /// The control thread's body: until stop().
  void run() noexcept;

  /// Any thread: does something to the member, and sends what comes of it. May throw bad_alloc.
  template <class Use>
  auto with_member(Use use) {
    return member_.with([&](Member& member) {
      Outbox out;
      auto result = use(member, out);
      if (!out.empty()) post(std::move(out));
      return result;
    });
  }
  /// Any thread: which ranks have not been there yet, and why; a clause. Empty: all have.
  [[nodiscard]] std::string absence() { return member_.absence(); }
  /// Any thread: waits until the topic is settled or the time is over.
  void wait_for(const Topic& topic, double seconds) { member_.wait_for(topic, seconds); }
  /// Any thread: whether it is attached to a relay.
  [[nodiscard]] bool has_relay() const noexcept {
    return has_relay_.load(std::memory_order_relaxed);
  }
  /// Any thread: asks run() to return, and waits for it; false: it has not, within `seconds`.
  [[nodiscard]] bool stop(double seconds) noexcept;

  [[nodiscard]] Admission admit(const Claim& claim) override;
  void opened(Connection& connection) override;
  void received(Connection& connection, Message message) override;
  void closed(Connection& connection, const std::string& why) override;

 private:
  void post(Outbox out);
  void have_done(std::function<void()> work);
  void run_loop();
  void start();
  [[nodiscard]] std::string fault_of_settings() const;
  void try_to_join();
  void note_unreached(const std::string& why);
  void note_joined();
  void lose(const std::string& why);
  void close_all();

  void tick();
  void arm_tick();
  void check_connections(double now);
  [[nodiscard]] bool is_busy();

  /// Passes messages on, and has those that wait look again if this rank's member has changed.
  /// @param member_changed before this; the hub of rank 0 mostly has nothing for it
  void dispatch(Outbox from_member, Outbox from_hub, bool member_changed = true);
  void deliver_to_hub(Outgoing outgoing, Outbox& from_hub);
  void deliver_of_hub(Outgoing outgoing, Outbox& from_member, bool& member_changed);
  void take_from_hub(Connection& connection, Message message);
  void take_from_member(Connection& connection, Message message);
  [[nodiscard]] std::string give_member(Message message);

  // Relays, in socket_star_relay.cpp:
  void send_up(Message message);
  void send_all_up(const Outbox& of_relay);
  /// As a relay: takes what the hub says to ranks of its span.
  [[nodiscard]] std::string pass_down(const Message& message);
  void take_from_relay(Connection& connection, Message message);
  void take_from_served(Connection& connection, Message message);
  void leave_relay(const std::string& why);
  void stop_serving(std::uint32_t rank);
  /// On rank 0: tells the rank of its relay, and those of its span of it, if it is one.
  void tell_relay(std::uint32_t rank);
  [[nodiscard]] std::string take_of_several(Connection& connection, Message message, Outbox& out);

  void answer(Connection& connection, const Topic& topic);

  SocketSettings settings_;
  Identity self_;
  asio::io_context loop_{1};
  Doorbell doorbell_{loop_};
  const bool own_descriptors_;
  TickTimer ticks_;
  SharedMember member_;
  std::optional<Hub> hub_;  // on rank 0
  Roster roster_;
  Callers callers_;
  PeerCalls peer_calls_;
  HubConnection to_hub_;  // on the others
  RelaySpans spans_;
  RelayRoutes routes_;  // of rank 0
  std::optional<Relay> relay_;
  RelayLinks links_;
  std::atomic<bool> has_relay_{false};
  bool is_lost_ = false;
  bool stopping_ = false;
};

}  // namespace contextune::rank
