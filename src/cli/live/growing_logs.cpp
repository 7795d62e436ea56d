#include "cli/live/growing_logs.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <contextune/error.hpp>
#include <filesystem>
#include <string_view>
#include <utility>

namespace contextune::cli {
namespace {

constexpr std::size_t read_bytes = 1'048'576;
// A line begins with time, run and process, so that much tells two files apart.
constexpr std::size_t beginning_bytes = 64;

}  // namespace

/// A regular file that is open for reading, or nothing.
class GrowingLogs::OpenFile {
 public:
  // Without O_NONBLOCK a pipe in the file's place would hold us.
  explicit OpenFile(const std::string& path)
      : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)) {
    if (fd_ >= 0 && (fstat(fd_, &status_) != 0 || !S_ISREG(status_.st_mode))) {
      close(fd_);
      fd_ = -1;
    }
  }
  ~OpenFile() {
    if (fd_ >= 0) close(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0; }
  [[nodiscard]] const struct stat& status() const noexcept { return status_; }
  /// Bytes that were read; 0 at the end, or where reading fails.
  std::size_t read(char* buffer, std::size_t size, std::uint64_t from) const noexcept {
    ssize_t count = -1;
    do {
      count = pread(fd_, buffer, size, static_cast<off_t>(from));
    } while (count < 0 && errno == EINTR);
    return count > 0 ? static_cast<std::size_t>(count) : 0;
  }

  /// Whether it is the file that was read before, with all that was read of it.
  [[nodiscard]] bool is_still(const File& file) const {
    if (status_.st_dev != file.device || status_.st_ino != file.inode ||
        static_cast<std::uint64_t>(status_.st_size) < file.offset)
      return false;
    std::string now(file.beginning.size(), '\0');
    return read(now.data(), now.size(), 0) == now.size() && now == file.beginning;
  }

 private:
  struct stat status_ {};
  int fd_;
};

bool GrowingLogs::read_new(const std::atomic<bool>& stopped) {
  const std::vector<std::string> paths = find_files();
  const bool lost = has_lost_any(paths);
  if (lost) start_over();
  bool grown = false;
  for (const std::string& path : paths) {
    if (stopped) break;
    grown = read_file(path, stopped) || grown;
  }
  return grown || lost;
}

std::vector<std::string> GrowingLogs::find_files() const {
  std::error_code error;
  if (std::filesystem::is_regular_file(path_, error)) return {path_};
  if (!std::filesystem::is_directory(path_, error)) return {};
  try {
    return log::find_rank_logs(path_);
  } catch (const Error&) {
    return {};  // it went meanwhile, or may not be read any more
  }
}

bool GrowingLogs::has_lost_any(const std::vector<std::string>& paths) const {
  return std::ranges::any_of(files_, [&](const auto& one) {
    if (std::ranges::find(paths, one.first) == paths.end()) return true;
    const OpenFile file(one.first);
    return !file.is_open() || !file.is_still(one.second);
  });
}

// Records are not taken back one by one: what is left is read again.
void GrowingLogs::start_over() {
  files_.clear();
  report_ = std::make_unique<log::ReportBuilder>();
}

bool GrowingLogs::read_file(const std::string& path, const std::atomic<bool>& stopped) {
  const OpenFile open_file(path);
  if (!open_file.is_open()) return false;
  const auto [place, is_new] = files_.try_emplace(path);
  File& file = place->second;
  if (is_new) {
    file.device = open_file.status().st_dev;
    file.inode = open_file.status().st_ino;
    file.lines = std::make_unique<log::LineReader>(
        path, [this](const log::Record& record) { return report_->add(record); });
  }
  std::string buffer(read_bytes, '\0');
  bool grown = false;
  while (!stopped) {
    const std::size_t count = open_file.read(buffer.data(), buffer.size(), file.offset);
    if (count == 0) break;
    const std::string_view piece(buffer.data(), count);
    if (file.beginning.size() < beginning_bytes)
      file.beginning.append(piece.substr(0, beginning_bytes - file.beginning.size()));
    file.offset += count;
    file.lines->feed(piece);
    grown = true;
  }
  return grown || is_new;
}

std::vector<log::BadLine> GrowingLogs::bad_lines() const {
  std::vector<log::BadLine> all;
  for (const auto& [path, file] : files_) {
    const auto& bad = file.lines->bad_lines();
    all.insert(all.end(), bad.begin(), bad.end());
  }
  return all;
}

std::uint64_t GrowingLogs::num_bad_lines() const {
  std::uint64_t number = 0;
  for (const auto& [path, file] : files_) number += file.lines->num_bad();
  return number;
}

std::uint64_t GrowingLogs::num_records() const {
  std::uint64_t number = 0;
  for (const auto& [path, file] : files_) number += file.lines->num_records();
  return number;
}

}  // namespace contextune::cli
