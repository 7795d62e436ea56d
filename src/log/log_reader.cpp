#include "log/log_reader.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include <contextune/error.hpp>

#include "core/value/parse_number.hpp"

namespace contextune::log {
namespace {

constexpr std::size_t max_line_bytes = 1U << 20U;
constexpr std::size_t max_kept_bad_lines = 1000;

std::optional<std::uint32_t> rank_of(std::string_view file_name) {
  constexpr std::string_view head = "rank-";
  constexpr std::string_view tail = ".log";
  if (!file_name.starts_with(head) || !file_name.ends_with(tail)) return std::nullopt;
  if (file_name.size() <= head.size() + tail.size()) return std::nullopt;
  file_name.remove_prefix(head.size());
  file_name.remove_suffix(tail.size());
  return parse_number<std::uint32_t>(file_name);
}

}  // namespace

std::string BadLine::to_string() const {
  const std::string place = line > 0 ? ":" + std::to_string(line) : std::string();
  return printable(file) + place + ": " + printable(reason);
}

LineReader::LineReader(std::string file, RecordSink sink, bool numbered)
    : file_(std::move(file)), sink_(std::move(sink)), numbered_(numbered) {}

void LineReader::feed(std::string_view piece) {
  for (std::size_t newline = piece.find('\n'); newline != std::string_view::npos;
       newline = piece.find('\n')) {
    const std::string_view head = piece.substr(0, newline);
    piece.remove_prefix(newline + 1);
    ++line_;
    if (too_long_ || partial_.size() + head.size() > max_line_bytes) {
      add_bad("is longer than 1 MiB");
    } else if (partial_.empty()) {
      take_line(head);
    } else {
      partial_ += head;
      take_line(partial_);
    }
    partial_.clear();
    too_long_ = false;
  }
  too_long_ = too_long_ || partial_.size() + piece.size() > max_line_bytes;
  if (too_long_) {
    partial_.clear();
  } else {
    partial_ += piece;
  }
}

void LineReader::finish() {
  if (!partial_.empty() || too_long_) {
    ++line_;
    add_bad("was cut off: it does not end in a newline");
  }
  partial_.clear();
  too_long_ = false;
}

void LineReader::take_line(std::string_view line) {
  if (line.empty()) return;
  auto parsed = parse_record(line);
  if (auto* reason = std::get_if<std::string>(&parsed)) return add_bad(std::move(*reason));
  std::string reason = sink_(std::get<Record>(parsed));
  if (!reason.empty()) return add_bad(std::move(reason));
  ++num_records_;
}

void LineReader::add_bad(std::string reason) {
  ++num_bad_;
  if (bad_.size() < max_kept_bad_lines) {
    bad_.push_back({file_, numbered_ ? line_ : 0, std::move(reason)});
  }
}

LogTail::LogTail(const std::string& path, RecordSink sink, std::uint64_t from_bytes)
    : path_(path), lines_(path, std::move(sink), from_bytes == 0), offset_(from_bytes) {}

int LogTail::poll() {
  // Without O_NONBLOCK a pipe in the file's place would hold us.
  const int fd = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0) return errno;
  struct stat status {};
  int error = fstat(fd, &status) == 0 ? 0 : errno;
  if (error == 0 && !S_ISREG(status.st_mode)) error = EINVAL;
  if (error == 0 && static_cast<std::uint64_t>(status.st_size) < offset_) offset_ = 0;
  std::array<char, 65536> buffer{};
  while (error == 0) {
    const ssize_t count = pread(fd, buffer.data(), buffer.size(), static_cast<off_t>(offset_));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) error = errno;
    if (count <= 0) break;
    offset_ += static_cast<std::uint64_t>(count);
    lines_.feed({buffer.data(), static_cast<std::size_t>(count)});
  }
  close(fd);
  return error;
}

int LogTail::finish() {
  const int error = poll();
  lines_.finish();
  return error;
}

std::vector<std::string> find_rank_logs(const std::string& folder) {
  std::vector<std::pair<std::uint32_t, std::string>> found;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (const auto rank = rank_of(name)) found.emplace_back(*rank, entry->path().string());
  }
  if (error) throw Error("cannot read the log folder " + folder + ": " + error.message());
  std::sort(found.begin(), found.end());
  std::vector<std::string> paths;
  paths.reserve(found.size());
  for (auto& [rank, path] : found) paths.push_back(std::move(path));
  return paths;
}

}  // namespace contextune::log
