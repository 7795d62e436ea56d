#include "store/mapped_file.hpp"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "store/descriptor.hpp"

namespace contextune::store {
namespace {

constexpr std::size_t mapped_bytes = std::size_t{4} << 20U;  // addresses; the file is as it is
constexpr std::size_t step_bytes = std::size_t{16} << 10U;

}  // namespace

MappedFile::MappedFile(const Descriptor& file, std::string path)
    : path_(std::move(path)), owner_(::getpid()) {
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) return;
  void* const memory =
      ::mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.number(), 0);
  if (memory == MAP_FAILED) return;
  // A child that lived on would hold the lock.
  (void)::madvise(memory, mapped_bytes, MADV_DONTFORK);
  memory_ = static_cast<char*>(memory);
  device_ = status.st_dev;
  inode_ = status.st_ino;
  size_ = static_cast<std::size_t>(status.st_size);
}

MappedFile::~MappedFile() {
  if (memory_ != nullptr && ::getpid() == owner_) (void)::munmap(memory_, mapped_bytes);
}

int MappedFile::put(std::size_t place, std::string_view text) {
  if (memory_ == nullptr || ::getpid() != owner_) return EBADF;
  const std::size_t end = place + text.size();
  if (const int error = grow(end); error != 0) return error;
  std::string padded(text);
  if (used_ > end) padded.append(used_ - end, '\0');
  const int error = copy(place, padded);
  if (error == 0) used_ = end;
  return error;
}

int MappedFile::grow(std::size_t bytes) {
  if (bytes <= size_) return 0;
  const std::size_t wanted = (bytes + step_bytes - 1) / step_bytes * step_bytes;
  if (wanted > mapped_bytes) return EFBIG;
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      wanted > limit.rlim_cur) {
    return EFBIG;
  }
  struct stat status {};
  if (::lstat(path_.c_str(), &status) != 0) return errno;
  if (status.st_dev != device_ || status.st_ino != inode_) return ENOENT;
  if (::truncate(path_.c_str(), static_cast<off_t>(wanted)) != 0) return errno;
  size_ = wanted;
  return 0;
}

int MappedFile::copy(std::size_t place, std::string_view text) const {
  while (!text.empty()) {
    iovec from{const_cast<char*>(text.data()), text.size()};
    iovec to{memory_ + place, text.size()};
    const ssize_t count = ::process_vm_writev(owner_, &from, 1, &to, 1, 0);
    if (count <= 0) return count == 0 || errno == EFAULT ? EIO : errno;
    text.remove_prefix(static_cast<std::size_t>(count));
    place += static_cast<std::size_t>(count);
  }
  return 0;
}

}  // namespace contextune::store
