#include "rank/socket_coordinator.hpp"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <utility>

#include "rank/socket_star.hpp"
#include "rank/standard_descriptors.hpp"

namespace contextune::rank {
namespace {

// For what the destructor waits: the control thread has nothing to do then but to close.
constexpr double stop_seconds = 0.5;

void start_control_thread(const std::shared_ptr<SocketStar>& star) {
  // The program's signal handlers must not run on a thread that it does not know.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    // It ends by itself once it is asked to; what it uses lives as long as it does.
    std::thread([star] {
      pthread_setname_np(pthread_self(), "contextune-rank");
      star->run();
    }).detach();
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

SocketCoordinator::SocketCoordinator(const SocketSettings& settings, Deciders deciders) noexcept
    : rank_(settings.rank), num_ranks_(settings.num_ranks), process_(getpid()) {
  try {
    const StandardDescriptorsTaken taken;
    auto star = std::make_shared<SocketStar>(settings, std::move(deciders));
    start_control_thread(star);
    star_ = std::move(star);
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

}  // namespace contextune::rank
