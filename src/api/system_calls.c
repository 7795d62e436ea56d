/* Functions of POSIX that we use and the driver does not. Their names are no names of C or C++, so
 * a program may have variables or functions of its own that are called so, and where it shows them
 * to its libraries, ours would find those. What the driver uses too no program with a GPU has. The
 * linker binds all of libcontextune.so to these, which no other object sees. */
#undef _FORTIFY_SOURCE /* whose headers define some of these in another way */
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int stat(const char* path, struct stat* status) {
  return (int)syscall(SYS_newfstatat, AT_FDCWD, path, status, 0);
}

int lstat(const char* path, struct stat* status) {
  return (int)syscall(SYS_newfstatat, AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}

int fstat(int fd, struct stat* status) {
  return (int)syscall(SYS_fstat, fd, status);
}

int flock(int fd, int operation) {
  return (int)syscall(SYS_flock, fd, operation);
}

int fsync(int fd) {
  return (int)syscall(SYS_fsync, fd);
}

ssize_t pread(int fd, void* data, size_t bytes, off_t offset) {
  return syscall(SYS_pread64, fd, data, bytes, offset);
}

ssize_t pwrite(int fd, const void* data, size_t bytes, off_t offset) {
  return syscall(SYS_pwrite64, fd, data, bytes, offset);
}

int truncate(const char* path, off_t bytes) {
  return (int)syscall(SYS_truncate, path, bytes);
}

ssize_t getrandom(void* data, size_t bytes, unsigned int flags) {
  return syscall(SYS_getrandom, data, bytes, flags);
}

pid_t gettid(void) {
  return (pid_t)syscall(SYS_gettid);
}

ssize_t send(int fd, const void* data, size_t bytes, int flags) {
  return syscall(SYS_sendto, fd, data, bytes, flags, (void*)0, 0);
}

ssize_t recv(int fd, void* data, size_t bytes, int flags) {
  return syscall(SYS_recvfrom, fd, data, bytes, flags, (void*)0, (void*)0);
}
