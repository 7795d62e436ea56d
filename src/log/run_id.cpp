#include "log/run_id.hpp"

#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace contextune::log {

std::string random_run_id() {
  std::uint32_t bits = 0;
  if (getrandom(&bits, sizeof bits, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof bits)) {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    bits = static_cast<std::uint32_t>(now.tv_nsec) * 2654435761U ^
           static_cast<std::uint32_t>(getpid()) * 40503U;
  }
  std::string id;
  for (unsigned shift = 0; shift < 24; shift += 4) id += "0123456789abcdef"[(bits >> shift) & 0xfU];
  return id;
}

std::string run_id_or_random(std::string_view given) {
  const bool usable = given.size() >= 4 && given.size() <= 32 &&
                      std::all_of(given.begin(), given.end(), [](char c) {
                        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                               (c >= 'A' && c <= 'Z') || c == '_' || c == '-';
                      });
  return usable ? std::string(given) : random_run_id();
}

}  // namespace contextune::log
