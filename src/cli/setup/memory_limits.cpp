#include "cli/setup/memory_limits.hpp"

#include <sys/resource.h>

namespace contextune::cli {
namespace {

constexpr rlim_t least_bytes = rlim_t{256} << 20;  // as preload/room.c has it

}  // namespace

std::string memory_obstacle() {
  constexpr struct {
    __rlimit_resource resource;
    const char* name;
  } limits[] = {{RLIMIT_DATA, "data (ulimit -d)"}, {RLIMIT_AS, "addresses (ulimit -v)"}};
  for (const auto& [resource, name] : limits) {
    rlimit limit{};
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) continue;
    if (limit.rlim_cur >= least_bytes) continue;
    return std::string("the limit on ") + name + " is " + std::to_string(limit.rlim_cur >> 20) +
           " MiB, and a program that has less than 256 MiB left is not touched";
  }
  return {};
}

}  // namespace contextune::cli
