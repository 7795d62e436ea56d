#pragma once

#include <asio.hpp>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rank/agreement_hub.hpp"
#include "rank/agreement_member.hpp"
#include "rank/connection.hpp"
#include "rank/doorbell.hpp"
#include "rank/peer_calls.hpp"
#include "rank/socket_coordinator.hpp"

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
    Outbox out;
    const std::lock_guard lock(mutex_);
    auto result = use(member_, out);
    if (!out.empty()) post(std::move(out));
    return result;
  }
  /// Any thread: which ranks have not been there yet, and why; a clause. Empty: all have.
  [[nodiscard]] std::string absence();
  /// Any thread: waits until the topic is settled or the time is over.
  void wait_for(const Topic& topic, double seconds);
  /// Any thread: asks run() to return, and waits for it; false: it has not, within `seconds`.
  [[nodiscard]] bool stop(double seconds) noexcept;

  [[nodiscard]] Admission admit(const Claim& claim) override;
  void opened(Connection& connection) override;
  void received(Connection& connection, Message message) override;
  void closed(Connection& connection, const std::string& why) override;

 private:
  using Clock = std::chrono::steady_clock;

  /// A thread that waits asks again and again for so long before it sleeps. Waking up takes longer
  /// than most answers do, and each answer takes several threads that wake one another.
  static constexpr std::chrono::microseconds spin_time{300};

  void post(Outbox out);
  void have_done(std::function<void()> work);
  void run_loop();
  void tell_waiting() noexcept;
  void start();
  [[nodiscard]] std::string fault_of_settings() const;
  void accept_next();
  void note_descriptors();
  /// Counts callers that have not proved yet who they are.
  [[nodiscard]] std::size_t num_strangers() const;
  [[nodiscard]] bool has_room();
  void try_to_join();
  void note_unreached(const std::string& why);
  void note_joined();
  void lose(const std::string& why);
  void close_all();

  void tick();
  void arm_tick();
  void check_connections(double now);
  [[nodiscard]] bool is_busy();
  [[nodiscard]] double now() const;

  void dispatch(Outbox from_member, Outbox from_hub);
  void deliver_to_hub(Outgoing outgoing, Outbox& from_hub);
  void deliver_to_member(Outgoing outgoing, Outbox& from_member);
  void send_peers();
  void take_from_hub(Connection& connection, Message message);
  void take_from_member(Connection& connection, Message message);
  void answer(Connection& connection, const Topic& topic);

  SocketSettings settings_;
  Identity self_;
  asio::io_context loop_{1};
  Doorbell doorbell_{loop_};
  const bool own_descriptors_;
  asio::steady_timer timer_{loop_};
  asio::posix::stream_descriptor listener_{loop_};

  const bool may_spin_;
  std::atomic<int> waiting_{0};            // threads in wait_for
  std::mutex mutex_;                       // of the next five
  std::atomic<std::uint32_t> changes_{0};  // so many times others were told
  std::condition_variable changed_;
  Member member_;
  bool ended_ = false;
  std::string absence_;

  std::optional<Hub> hub_;  // on rank 0
  PeerCalls peer_calls_;
  std::shared_ptr<Connection> to_hub_;                           // on the others
  std::map<std::uint32_t, std::shared_ptr<Connection>> joined_;  // on rank 0
  std::set<std::uint32_t> seen_;                                 // ranks that ever joined
  std::map<Connection*, std::shared_ptr<Connection>> callers_;   // not joined
  std::vector<Message> to_send_;                                 // to the hub, once joined
  std::vector<std::string> addresses_;
  std::uint64_t epoch_ = 0;  // 0: not known yet
  bool peers_changed_ = false;
  bool listens_ = false;
  bool lacks_descriptors_ = false;
  int silent_ends_ = 0;  // of rank 0, since it was reached
  bool accepting_ = false;
  bool is_lost_ = false;
  bool stopping_ = false;
  Clock::time_point started_ = Clock::now();
  double join_again_ = 0;
  std::size_t join_attempts_ = 0;
  double next_tick_ = 0;
  double next_heartbeat_ = 0;
};

}  // namespace contextune::rank
