#include "rank/star/socket_coordinator.hpp"

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "host/own_descriptors.hpp"
#include "host/own_thread.hpp"
#include "rank/star/socket_star.hpp"
#include "rank/wire/listener.hpp"
#include "rank/wire/standard_descriptors.hpp"

namespace contextune::rank {
namespace {

// For what the destructor waits: the control thread has nothing to do then but to close.
constexpr double stop_seconds = 0.5;

// For its start.
constexpr std::chrono::seconds most_start{5};

/// Shared by the control thread and the one that started it.
struct Start {
  std::mutex mutex;
  std::condition_variable changed;
  bool ready = false;
  bool own_descriptors = false;
  bool released = false;  ///< nobody uses the star any more
  SocketStar* star = nullptr;
};

// The star is made, and ends, where its descriptors are.
void control(const std::shared_ptr<Start>& start, SocketSettings settings, Deciders deciders,
             int listener) noexcept {
  const bool own = host::own_descriptors(listener);
  std::unique_ptr<SocketStar> star;
  try {
    if (listener >= 0) settings.listener = std::make_shared<Listener>(listener);
    std::optional<StandardDescriptorsTaken> taken;
    if (!own) taken.emplace();
    star = std::make_unique<SocketStar>(settings, std::move(deciders), own);
  } catch (...) {
    star = nullptr;
  }
  std::unique_lock lock(start->mutex);
  start->star = star.get();
  start->own_descriptors = own;
  start->ready = true;
  start->changed.notify_all();
  const bool runs = star != nullptr && !start->released;
  lock.unlock();
  if (runs) star->run();
  lock.lock();
  start->changed.wait(lock, [&] { return start->released; });
  lock.unlock();
  star.reset();
}

void start_control_thread(const std::shared_ptr<Start>& start, SocketSettings settings,
                          Deciders deciders, int listener) {
  // It ends by itself once it is asked to; what it uses lives as long as it does.
  host::start_own_thread("contextune-rank", [start, settings = std::move(settings),
                                             deciders = std::move(deciders), listener]() mutable {
    control(start, std::move(settings), std::move(deciders), listener);
  });
}

/// Null: it cannot be made.
std::shared_ptr<SocketStar> start_star(const SocketSettings& settings, Deciders deciders) {
  const auto start = std::make_shared<Start>();
  const int listener = settings.listener ? settings.listener->take() : -1;
  start_control_thread(start, settings, std::move(deciders), listener);
  std::unique_lock lock(start->mutex);
  const bool ready = start->changed.wait_for(lock, most_start, [&] { return start->ready; });
  // The thread has it under the same number, in a table of its own.
  if (ready && start->own_descriptors && listener >= 0) close(listener);
  const auto release = [start](SocketStar*) {
    const std::lock_guard its_lock(start->mutex);
    start->released = true;
    start->changed.notify_all();
  };
  if (start->star != nullptr) {
    lock.unlock();
    return {start->star, release};
  }
  start->released = true;
  start->changed.notify_all();
  return nullptr;
}

}  // namespace

SocketCoordinator::SocketCoordinator(const SocketSettings& settings, Deciders deciders) noexcept
    : rank_(settings.rank), num_ranks_(settings.num_ranks), process_(getpid()) {
  try {
    star_ = start_star(settings, std::move(deciders));
  } catch (...) {
    star_ = nullptr;
  }
}

SocketCoordinator::~SocketCoordinator() {
  if (star_ == nullptr) return;
  if (getpid() != process_) {
    // The thread is the parent's, and so may the locks be.
    static_cast<void>(new std::shared_ptr<SocketStar>(std::move(star_)));
    return;
  }
  static_cast<void>(star_->stop(stop_seconds));
}

bool SocketCoordinator::usable() const noexcept {
  return star_ != nullptr && getpid() == process_;
}

Agreement SocketCoordinator::refusal() const noexcept {
  Agreement agreement;
  agreement.verdict = Verdict::Aborted;
  agreement.culprit = rank_;
  try {
    agreement.why = lost();
  } catch (...) {
    agreement.why.clear();
  }
  return agreement;
}

void SocketCoordinator::say(const Topic& topic, std::uint32_t kind, Payload part,
                            double seconds) noexcept {
  if (!usable()) return;
  try {
    star_->with_member([&](Member& member, Outbox& out) {
      member.say(topic, kind, std::move(part), seconds, out);
      return 0;
    });
  } catch (...) {
    return;  // out of memory: to the others this rank does not come
  }
}

Agreement SocketCoordinator::poll(const Topic& topic) noexcept {
  if (!usable()) return refusal();
  try {
    return star_->with_member([&](Member& member, Outbox&) { return member.poll(topic); });
  } catch (...) {
    return {};
  }
}

Agreement SocketCoordinator::wait(const Topic& topic, double seconds) noexcept {
  if (!usable()) return refusal();
  try {
    const auto start = std::chrono::steady_clock::now();
    star_->wait_for(topic, seconds);
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start;
    return star_->with_member([&](Member& member, Outbox&) {
      member.add_waited(topic, waited.count());
      return member.poll(topic);
    });
  } catch (...) {
    return {};
  }
}

void SocketCoordinator::withdraw(const Topic& topic, std::string why) noexcept {
  if (!usable()) return;
  try {
    if (const std::string absence = star_->absence(); !absence.empty()) why += "; " + absence;
    star_->with_member([&](Member& member, Outbox& out) {
      member.withdraw(topic, std::move(why), out);
      return 0;
    });
  } catch (...) {
    return;
  }
}

void SocketCoordinator::occupied(const Topic& topic, double seconds, std::string why) noexcept {
  if (!usable()) return;
  try {
    star_->with_member([&](Member& member, Outbox&) {
      member.occupied(topic, seconds, std::move(why));
      return 0;
    });
  } catch (...) {
    return;  // out of memory: to the others it is only late
  }
}

void SocketCoordinator::engage(const std::vector<std::uint32_t>& ranks, std::string why) noexcept {
  if (!usable()) return;
  try {
    star_->with_member([&](Member& member, Outbox& out) {
      member.engage(ranks, std::move(why), out);
      return 0;
    });
  } catch (...) {
    return;  // out of memory: to the others it is only late
  }
}

void SocketCoordinator::disengage(const std::vector<std::uint32_t>& ranks) noexcept {
  if (!usable()) return;
  try {
    star_->with_member([&](Member& member, Outbox& out) {
      member.disengage(ranks, out);
      return 0;
    });
  } catch (...) {
    return;  // others wait for as long as they were told
  }
}

std::string SocketCoordinator::lost() const {
  if (star_ == nullptr) return "no thread or no memory to agree with other ranks";
  if (getpid() != process_) return "this process is a child of the one that agrees";
  return star_->with_member([](Member& member, Outbox&) { return member.lost(); });
}

bool SocketCoordinator::has_relay() const noexcept {
  return usable() && star_->has_relay();
}

}  // namespace contextune::rank
