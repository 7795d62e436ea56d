/* How much memory a limit leaves the program. */
#include "frontend.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

enum { num_fields = 7, megabytes_for_us = 256 };

/* Reads /proc/self/statm, in pages. Without stdio, which may allocate. */
static bool read_sizes(rlim_t* fields) {
  char text[256];
  const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  const ssize_t length = file >= 0 ? read(file, text, sizeof text - 1) : -1;
  if (file >= 0) {
    close(file);
  }
  unsigned int field = 0;
  fields[0] = 0;
  for (ssize_t i = 0; i < length && field < num_fields; ++i) {
    if (text[i] >= '0' && text[i] <= '9') {
      fields[field] = fields[field] * 10 + (rlim_t)(text[i] - '0');
    } else if (++field < num_fields) {
      fields[field] = 0;
    }
  }
  return field >= num_fields;
}

bool contextune_has_room(void) {
  static const struct {
    __rlimit_resource_t resource;
    unsigned int field;
  } limits[] = {{RLIMIT_AS, 0}, {RLIMIT_DATA, 5}};
  const rlim_t needed = (rlim_t)megabytes_for_us << 20;
  rlim_t fields[num_fields] = {0};
  for (size_t i = 0; i < sizeof limits / sizeof limits[0]; ++i) {
    struct rlimit limit;
    if (getrlimit(limits[i].resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
      continue;
    }
    const rlim_t used =
        read_sizes(fields) ? fields[limits[i].field] * (rlim_t)sysconf(_SC_PAGESIZE) : 0;
    if (limit.rlim_cur < needed || limit.rlim_cur - needed < used) {
      return false;
    }
  }
  return true;
}
