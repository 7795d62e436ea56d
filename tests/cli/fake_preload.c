/* Stands for libcontextune_preload.so where only the command is tested: says in the file that
 * FAKE_PRELOAD_NOTES names which process it was loaded into. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((constructor)) static void note(void) {
  const char* path = getenv("FAKE_PRELOAD_NOTES");
  char line[32];
  if (path == NULL) return;
  const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (fd < 0) return;
  const int size = snprintf(line, sizeof line, "%d\n", (int)getpid());
  if (write(fd, line, (size_t)size) != size) abort();
  close(fd);
}
