#include "rank/wire/free_descriptors.hpp"

#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>

namespace contextune::rank {
namespace {

constexpr std::size_t descriptors_of_program = 32;

/// How many the process may have at a time.
std::size_t limit() noexcept {
  rlimit descriptors{};
  if (getrlimit(RLIMIT_NOFILE, &descriptors) != 0) return 0;
  return descriptors.rlim_cur;
}

}  // namespace

bool has_free_descriptors(std::size_t count) noexcept {
  const std::size_t end = limit();
  std::size_t free = 0;
  std::array<pollfd, 256> looked_at{};
  for (std::size_t first = 0; first < end && free < count; first += looked_at.size()) {
    const std::size_t size = std::min(looked_at.size(), end - first);
    for (std::size_t i = 0; i < size; ++i) looked_at[i] = {static_cast<int>(first + i), 0, 0};
    if (poll(looked_at.data(), size, 0) < 0) return false;
    free += static_cast<std::size_t>(
        std::count_if(looked_at.begin(), looked_at.begin() + static_cast<std::ptrdiff_t>(size),
                      [](const pollfd& one) { return (one.revents & POLLNVAL) != 0; }));
  }
  return free >= count;
}

bool leaves_descriptors_to_program() noexcept {
  return has_free_descriptors(1 + std::min(descriptors_of_program, limit() / 4));
}

}  // namespace contextune::rank
