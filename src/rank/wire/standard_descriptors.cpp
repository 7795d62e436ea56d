#include "rank/wire/standard_descriptors.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace contextune::rank {

StandardDescriptorsTaken::StandardDescriptorsTaken() noexcept {
  for (int& taken : taken_) {
    const int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd > STDERR_FILENO) close(fd);
    if (fd < 0 || fd > STDERR_FILENO) return;
    taken = fd;
  }
}

StandardDescriptorsTaken::~StandardDescriptorsTaken() {
  for (const int taken : taken_) {
    if (taken >= 0) close(taken);
  }
}

}  // namespace contextune::rank
