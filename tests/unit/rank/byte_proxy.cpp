#include "byte_proxy.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "rank/wire/endpoint.hpp"

using namespace contextune::rank;

ByteProxy::ByteProxy(const std::string& address, std::string target, Limits limits)
    : target_(std::move(target)), limits_(limits) {
  std::string error;
  listener_ = listen_at(address, error);
  if (listener_ < 0) throw std::runtime_error(error);
  thread_ = std::thread([this] { work(); });
}

ByteProxy::~ByteProxy() {
  stop_ = true;
  thread_.join();
  close(listener_);
}

std::vector<std::byte> ByteProxy::recorded() const {
  const std::lock_guard lock(mutex_);
  return recorded_;
}

void ByteProxy::work() {
  while (!stop_) {
    pollfd wait{listener_, POLLIN, 0};
    if (poll(&wait, 1, 5) <= 0) continue;
    const int caller = accept_caller(listener_);
    if (caller < 0) continue;
    serve(caller);
    close(caller);
  }
}

void ByteProxy::serve(int caller) {
  Endpoint endpoint;
  std::string error;
  if (!find_endpoint(target_, endpoint, error)) return;
  const int target = start_connecting(endpoint, error);
  if (target < 0) return;
  bool holds = false;
  std::array<std::byte, 4096> bytes{};
  // From one, to the other, while there is something left of the limit.
  const auto pass = [&](int from, int to, std::size_t& left) {
    const ssize_t got = recv(from, bytes.data(), std::min(bytes.size(), left), MSG_DONTWAIT);
    if (got <= 0) return false;
    const auto size = static_cast<std::size_t>(got);
    if (from == caller) {
      const std::lock_guard lock(mutex_);
      recorded_.insert(recorded_.end(), bytes.begin(), bytes.begin() + got);
    }
    left -= size;
    return send(to, bytes.data(), size, MSG_NOSIGNAL) == got;
  };
  bool goes_on = limits_.to_target > 0 && limits_.to_caller > 0;
  while (!stop_ && (goes_on || holds)) {
    if (holds) {
      usleep(2000);
      continue;
    }
    std::array<pollfd, 2> wait{{{caller, POLLIN, 0}, {target, POLLIN, 0}}};
    if (poll(wait.data(), wait.size(), 5) <= 0) continue;
    if (wait[0].revents != 0) goes_on = pass(caller, target, limits_.to_target);
    if (goes_on && wait[1].revents != 0) goes_on = pass(target, caller, limits_.to_caller);
    const bool spent = limits_.to_target == 0 || limits_.to_caller == 0;
    if (spent) {
      goes_on = false;
      holds = limits_.then_holds;
    }
  }
  close(target);
}
