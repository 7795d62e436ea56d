#include "cli/trace/whole_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <streambuf>
#include <utility>
#include <vector>

#include <contextune/error.hpp>

#include "log/logfmt.hpp"

namespace contextune::cli {
namespace {

constexpr std::size_t buffer_bytes = std::size_t{256} << 10U;

// As open() gives new files.
mode_t usual_mode() {
  const mode_t mask = umask(0);
  umask(mask);
  return 0666U & ~mask;
}

const char* advice(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return "make room there, or name a file on another disk";
    case EACCES:
    case EPERM:
    case EROFS:
      return "name a file in a folder that you may write";
    case ENOENT:
    case ENOTDIR:
      return "make its folder first, or name a file in one that there is";
    case EISDIR:
      return "name a file in that folder";
    default:
      return "name another file";
  }
}

}  // namespace

/// Bytes to a descriptor, counted. The first error stays.
class WholeFile::Sink final : public std::streambuf {
 public:
  Sink(int fd, bool owned) : fd_(fd), owned_(owned), buffer_(buffer_bytes) {
    setp(buffer_.data(), buffer_.data() + buffer_.size());
  }
  ~Sink() override { (void)close_file(); }
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  /// Writes what waits. Returns `errno`, or 0.
  int finish() {
    (void)write_out();
    const int error = close_file();
    return error_ != 0 ? error_ : error;
  }
  [[nodiscard]] int fd() const noexcept { return fd_; }
  [[nodiscard]] int error() const noexcept { return error_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 protected:
  int_type overflow(int_type c) override {
    if (!write_out()) return traits_type::eof();
    if (!traits_type::eq_int_type(c, traits_type::eof())) {
      *pptr() = traits_type::to_char_type(c);
      pbump(1);
    }
    return traits_type::not_eof(c);
  }
  int sync() override { return write_out() ? 0 : -1; }

 private:
  bool write_out() {
    const char* at = pbase();
    while (error_ == 0 && at < pptr()) {
      const ssize_t count = ::write(fd_, at, static_cast<std::size_t>(pptr() - at));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) {
        error_ = errno;
        break;
      }
      at += count;
      bytes_ += static_cast<std::uint64_t>(count);
    }
    setp(buffer_.data(), buffer_.data() + buffer_.size());
    return error_ == 0;
  }

  // A disk may say only here that it is full. Pipes and devices cannot be synced.
  int close_file() {
    if (!owned_ || fd_ < 0) return 0;
    int error = ::fsync(fd_) == 0 || errno == EINVAL || errno == EROFS ? 0 : errno;
    if (::close(std::exchange(fd_, -1)) != 0 && error == 0) error = errno;
    return error;
  }

  int fd_;
  bool owned_;
  int error_ = 0;
  std::uint64_t bytes_ = 0;
  std::vector<char> buffer_;
};

WholeFile::WholeFile(std::string path) : path_(std::move(path)), target_(path_), stream_(nullptr) {
  int fd = STDOUT_FILENO;
  if (path_ != "-") {
    std::error_code ignored;
    // A link stays, and what it leads to is replaced.
    const std::filesystem::path led_to = std::filesystem::weakly_canonical(path_, ignored);
    if (!ignored) target_ = led_to.string();
    struct stat there {};
    const bool exists = ::stat(path_.c_str(), &there) == 0;
    if (exists && S_ISDIR(there.st_mode)) fail(EISDIR);
    if (exists && !S_ISREG(there.st_mode)) {
      fd = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
    } else {
      const std::filesystem::path target(target_);
      temporary_ = (target.parent_path() / ".contextune-XXXXXX").string();
      fd = ::mkostemp(temporary_.data(), O_CLOEXEC);
      if (fd >= 0) (void)::fchmod(fd, exists ? there.st_mode & 07777U : usual_mode());
    }
    if (fd < 0) {
      const int error = errno;
      temporary_.clear();
      fail(error);
    }
  }
  sink_ = std::make_unique<Sink>(fd, path_ != "-");
  stream_.rdbuf(sink_.get());
}

WholeFile::~WholeFile() {
  if (!temporary_.empty()) (void)::unlink(temporary_.c_str());
}

std::ostream& WholeFile::stream() noexcept {
  return stream_;
}

std::uint64_t WholeFile::finish() {
  if (const int error = sink_->finish(); error != 0) fail(error);
  if (!temporary_.empty()) {
    if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail(errno);
    temporary_.clear();
  }
  return sink_->bytes();
}

void WholeFile::fail(int error) const {
  const std::string name = path_ == "-" ? "standard output" : log::printable(path_);
  std::string text = "cannot write " + name + ": " + std::strerror(error) + "; " + advice(error);
  // A file of that name is the one that was there before.
  if (!temporary_.empty()) text += "; nothing was written, and what was there is unchanged";
  throw Error(text);
}

}  // namespace contextune::cli
