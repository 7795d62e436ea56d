#pragma once

#include <unistd.h>

#include <utility>

namespace contextune::rank {

/// A socket that listens already, until somebody takes it over.
class Listener {
 public:
  explicit Listener(int socket) noexcept : socket_(socket) {}
  ~Listener() {
    if (socket_ >= 0) close(socket_);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  [[nodiscard]] int socket() const noexcept { return socket_; }
  [[nodiscard]] int take() noexcept { return std::exchange(socket_, -1); }

 private:
  int socket_;
};

}  // namespace contextune::rank
