#include "log/rank_log.hpp"

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <mutex>

#include "core/value/option_table.hpp"
#include "log/line_time.hpp"
#include "log/line_writer.hpp"
#include "log/log_file.hpp"
#include "log/logfmt.hpp"
#include "log/run_id.hpp"

namespace contextune::log {
namespace {

// Where the disk stands still, the program goes on. On a busy machine a thread that could run may
// not for hundreds of milliseconds, and what a program's last line says would be lost.
constexpr std::chrono::milliseconds most_flush{2000};
// The thread that writes may itself wait for a lock of the code that the handler interrupted.
constexpr std::chrono::milliseconds most_flush_in_handler{100};

class LineSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit LineSink(const std::string& path) { file_ = &writer_.add(path); }
  [[nodiscard]] const LogFile& file() const { return *file_.load(); }

  // Not by spdlog, which would hold up whoever writes a line meanwhile.
  void await_lines() { writer_.flush(most_flush); }
  void await_lines_in_signal_handler() const {
    writer_.flush_in_signal_handler(most_flush_in_handler);
  }

  /// To a file of that name beside the one that it was.
  void move_to(const std::string& name) {
    const std::lock_guard lock(mutex_);
    const std::filesystem::path folder = std::filesystem::path(file().path()).parent_path();
    file_ = &writer_.add((folder / name).string());
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    writer_.append(*file_.load(), std::string_view(line.data(), line.size()));
  }
  void flush_() override {}

 private:
  LineWriter writer_;  // with a file that was left, which is still looked at by others
  std::atomic<LogFile*> file_{nullptr};
};

// Not by spdlog: it asks C for the parts of the time, which looks for a time zone first.
std::string time_now() {
  return milliseconds_text(
      std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now()));
}

std::string name_of_file(int rank) {
  return "rank-" + std::to_string(rank) + ".log";
}

spdlog::level::level_enum spdlog_level(LogLevel level) {
  if (level == LogLevel::Debug) return spdlog::level::debug;
  return level == LogLevel::Info ? spdlog::level::info : spdlog::level::warn;
}

void append_value(std::string& line, const Field& field) {
  std::array<char, 64> digits{};
  char* const end = digits.data() + digits.size();
  std::to_chars_result result{digits.data(), {}};
  if (const auto* text = std::get_if<std::string_view>(&field.value)) {
    return append_field(line, field.name, *text);
  }
  if (const auto* yes = std::get_if<bool>(&field.value)) {
    return append_field(line, field.name, *yes ? "yes" : "no");
  }
  if (const auto* number = std::get_if<std::int64_t>(&field.value)) {
    result = std::to_chars(digits.data(), end, *number);
  } else if (const auto* count = std::get_if<std::uint64_t>(&field.value)) {
    result = std::to_chars(digits.data(), end, *count);
  } else {
    const double real = std::get<double>(field.value);
    const bool whole = std::abs(real) >= 1e6 && std::abs(real) < 1e15;  // 1500000, not 1.5e+06
    result = whole ? std::to_chars(digits.data(), end, real, std::chars_format::fixed, 0)
                   : std::to_chars(digits.data(), end, real, std::chars_format::general, 6);
  }
  append_field(
      line, field.name,
      std::string_view(digits.data(), static_cast<std::size_t>(result.ptr - digits.data())));
}

}  // namespace

// The logger is our own object: spdlog's registry is shared with whatever spdlog the program has.
class RankLog::Writer {
 public:
  explicit Writer(const Settings& settings)
      : run_(run_id_or_random(settings.run)),
        rank_(settings.rank),
        owner_(getpid()),
        sink_(std::make_shared<LineSink>(settings.folder + "/" + name_of_file(settings.rank))),
        logger_("contextune", sink_) {
    logger_.set_formatter(
        std::make_unique<spdlog::pattern_formatter>("%v", spdlog::pattern_time_type::utc, "\n"));
    logger_.set_level(spdlog_level(settings.level));
    logger_.set_error_handler([](const std::string&) {});
  }

  void write(LogLevel level, std::string_view event, std::span<const Field> fields) {
    // A child of fork shares the file but not the story; it may also have been forked while
    // another thread held the sink's lock.
    if (!wants(level) || getpid() != owner_) return;
    std::string line = time_now();
    line.reserve(256);
    append_field(line, "run", run_);
    append_value(line, Field("pid", owner_));
    append_value(line, Field("rank", rank_.load(std::memory_order_relaxed)));
    append_field(line, "level", contextune::to_string(level));
    append_field(line, "event", event);
    for (const Field& field : fields) append_value(line, field);
    logger_.log(spdlog_level(level), spdlog::string_view_t(line.data(), line.size()));
  }

  void become(int rank) {
    if (rank == rank_.load(std::memory_order_relaxed) || getpid() != owner_) return;
    const std::array fields{Field("becomes", rank)};
    write(LogLevel::Info, "rank", fields);
    sink_->move_to(name_of_file(rank));
    rank_.store(rank, std::memory_order_relaxed);
  }

  void flush() const {
    if (getpid() == owner_) sink_->await_lines();
  }

  void flush_in_signal_handler() const {
    if (getpid() == owner_) sink_->await_lines_in_signal_handler();
  }

  [[nodiscard]] bool wants(LogLevel level) const { return logger_.should_log(spdlog_level(level)); }
  [[nodiscard]] const LogFile& file() const { return sink_->file(); }
  [[nodiscard]] const LogFile& flushed_file() const {
    flush();
    return file();
  }

 private:
  std::string run_;
  std::atomic<int> rank_;
  pid_t owner_;
  std::shared_ptr<LineSink> sink_;
  spdlog::logger logger_;
};

RankLog::RankLog(const Settings& settings) : writer_(std::make_unique<Writer>(settings)) {}
RankLog::~RankLog() = default;

void RankLog::write(LogLevel level, std::string_view event, std::span<const Field> fields) noexcept
    try {
  writer_->write(level, event, fields);
} catch (...) {
  // Out of memory: the line is lost, the program goes on.
}

void RankLog::become(int rank) noexcept try { writer_->become(rank); } catch (...) {
  // As above: its lines stay where they are.
}

void RankLog::flush() const noexcept try { writer_->flush(); } catch (...) {
  // Nobody waits, then.
}

void RankLog::flush_in_signal_handler() const noexcept {
  writer_->flush_in_signal_handler();
}

bool RankLog::wants(LogLevel level) const noexcept {
  return writer_->wants(level);
}
const std::string& RankLog::path() const noexcept {
  return writer_->file().path();
}
std::uint64_t RankLog::lines_written() const noexcept {
  return writer_->flushed_file().lines_written();
}
std::uint64_t RankLog::lines_lost() const noexcept {
  return writer_->flushed_file().lines_lost();
}
int RankLog::last_error() const noexcept {
  return writer_->flushed_file().last_error();
}

}  // namespace contextune::log
