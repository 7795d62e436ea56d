#include "gpu/driver/byte_source.hpp"

#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "gpu/driver/regular_file.hpp"

namespace contextune::gpu {
namespace {

constexpr std::size_t text_step_bytes = 64 << 10;

// Steps of one page at most at the end of what is mapped: a copy that meets a hole gives nothing of
// the piece that has it.
constexpr std::uintptr_t page_bytes = 4096;

}  // namespace

std::optional<std::string> ByteSource::read_bytes(std::uint64_t offset, std::uint64_t bytes) const {
  if (bytes > most_image_bytes) return std::nullopt;
  // Not all at once: a size that is not true is found out before it costs memory.
  std::string content;
  while (content.size() < bytes) {
    const std::size_t have = content.size();
    const std::size_t step = static_cast<std::size_t>(
        std::min<std::uint64_t>(bytes - have, std::max(have, text_step_bytes)));
    content.resize(have + step);
    if (!read(offset + have, content.data() + have, step)) return std::nullopt;
  }
  return content;
}

std::optional<std::string> ByteSource::read_text(std::uint64_t offset) const {
  std::string text;
  while (text.size() < most_image_bytes) {
    const std::size_t have = text.size();
    text.resize(have + text_step_bytes);
    const std::size_t got = read_some(offset + have, text.data() + have, text_step_bytes);
    text.resize(have + got);
    if (const auto end = text.find('\0', have); end != std::string::npos) {
      text.resize(end);
      return text;
    }
    if (got < text_step_bytes) return text;
  }
  return std::nullopt;
}

std::size_t BufferSource::read_some(std::uint64_t offset, void* to,
                                    std::size_t bytes) const noexcept {
  if (bytes == 0 || offset >= bytes_.size()) return 0;  // nothing may go to nowhere
  const std::size_t count = std::min(bytes, bytes_.size() - static_cast<std::size_t>(offset));
  std::memcpy(to, bytes_.data() + offset, count);
  return count;
}

std::size_t MemorySource::read_some(std::uint64_t offset, void* to,
                                    std::size_t bytes) const noexcept {
  constexpr std::size_t most_small = 1024;
  if (bytes > most_small) return copy(offset, to, bytes);
  const auto has = [&] {
    return offset >= window_begin_ && offset - window_begin_ + bytes <= window_bytes_;
  };
  if (!has()) {
    window_begin_ = offset;
    window_bytes_ = copy(offset, window_.data(), window_.size());
  }
  const std::size_t got = has() ? bytes : window_bytes_;
  std::memcpy(to, window_.data() + (offset - window_begin_), got);
  return got;
}

std::size_t MemorySource::copy(std::uint64_t offset, void* to, std::size_t bytes) const noexcept {
  const auto base = reinterpret_cast<std::uintptr_t>(address_);
  if (offset > std::numeric_limits<std::uintptr_t>::max() - base) return 0;
  const pid_t self = getpid();
  std::size_t done = 0;
  while (done < bytes) {
    const std::uintptr_t from = base + offset + done;
    std::size_t step = bytes - done;
    iovec local{static_cast<char*>(to) + done, step};
    // The address belongs to whoever made the image; only the kernel looks at it.
    iovec remote{reinterpret_cast<void*>(from), step};
    ssize_t got = process_vm_readv(self, &local, 1, &remote, 1, 0);
    if (got <= 0) {
      step = std::min<std::size_t>(step, page_bytes - from % page_bytes);
      local.iov_len = remote.iov_len = step;
      got = process_vm_readv(self, &local, 1, &remote, 1, 0);
    }
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

FileSource::FileSource(const std::string& path) noexcept : descriptor_(open_regular_file(path)) {}

FileSource::~FileSource() {
  if (descriptor_ >= 0) (void)close(descriptor_);
}

std::string FileSource::version() const {
  struct stat status {};
  if (descriptor_ < 0 || fstat(descriptor_, &status) != 0) return {};
  std::string text;
  for (const auto part :
       {static_cast<long long>(status.st_dev), static_cast<long long>(status.st_ino),
        static_cast<long long>(status.st_size), static_cast<long long>(status.st_mtim.tv_sec),
        static_cast<long long>(status.st_mtim.tv_nsec)}) {
    text += std::to_string(part) + ' ';
  }
  return text;
}

std::size_t FileSource::read_some(std::uint64_t offset, void* to,
                                  std::size_t bytes) const noexcept {
  std::size_t done = 0;
  if (descriptor_ < 0 ||
      offset > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max() / 2)) {
    return 0;
  }
  while (done < bytes) {
    const ssize_t got = pread(descriptor_, static_cast<char*>(to) + done, bytes - done,
                              static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

}  // namespace contextune::gpu
