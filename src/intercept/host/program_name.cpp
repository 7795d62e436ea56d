#include "intercept/host/program_name.hpp"

#include <errno.h>  // program_invocation_name
#include <unistd.h>

#include <array>

namespace contextune::intercept {

std::string program_name() {
  std::array<char, 4096> path{};
  const ssize_t size = readlink("/proc/self/exe", path.data(), path.size());
  if (size <= 0) return program_invocation_name;
  return {path.data(), static_cast<std::size_t>(size)};
}

}  // namespace contextune::intercept
