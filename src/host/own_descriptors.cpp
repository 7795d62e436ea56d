#include "host/own_descriptors.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace contextune::host {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool is_possible = false;  // what it has to say of such a thread goes to descriptor 2
#else
constexpr bool is_possible = true;
#endif

bool close_range(unsigned first, unsigned last, unsigned flags) noexcept {
  return syscall(SYS_close_range, first, last, flags) == 0;
}

}  // namespace

bool own_descriptors(int kept) noexcept {
  constexpr unsigned unshare = 2;  // CLOSE_RANGE_UNSHARE, which headers have as late as the system
  if (!is_possible || (kept >= 0 && kept <= STDERR_FILENO)) return false;
  if (kept < 0) {
    if (!close_range(0, ~0U, unshare)) return false;
  } else {
    if (!close_range(0, static_cast<unsigned>(kept) - 1, unshare)) return false;
    (void)close_range(static_cast<unsigned>(kept) + 1, ~0U, 0);
  }
  for (int number = 0; number <= STDERR_FILENO; ++number)
    (void)open("/dev/null", O_RDWR | O_CLOEXEC);
  return true;
}

}  // namespace contextune::host
