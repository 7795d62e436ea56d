#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include <contextune/options.hpp>

namespace contextune::log {

/// A `name=value` of a line that is about to be written. Refers to its texts: valid as long as they
/// are.
struct Field {
  std::string_view name;
  std::variant<std::string_view, std::int64_t, std::uint64_t, double, bool> value;

  Field(std::string_view field, std::string_view text) : name(field), value(text) {}
  Field(std::string_view field, const char* text) : name(field), value(std::string_view(text)) {}
  Field(std::string_view field, const std::string& text)
      : name(field), value(std::string_view(text)) {}
  Field(std::string_view field, double number) : name(field), value(number) {}
  Field(std::string_view field, bool yes) : name(field), value(yes) {}
  Field(std::string_view field, std::signed_integral auto number)
      : name(field), value(static_cast<std::int64_t>(number)) {}
  Field(std::string_view field, std::unsigned_integral auto number)
      : name(field), value(static_cast<std::uint64_t>(number)) {}
};

/// The log of one rank, a line for each event, in `<folder>/rank-<rank>.log`:
/// `2026-11-20T20:33:53.120Z run=7f3a21 pid=4242 rank=0 level=info event=trial region=decode ...`
/// The file appears with the first line. Nothing that happens here reaches the program: a full
/// disk, a folder that cannot be written or that vanishes cost lines, which are counted. In a child
/// of fork it writes nothing.
/// Lines are written behind the scenes, in their order: a process that is killed may lose those of
/// its last moment, unless it has waited for them.
/// Any thread; lines are whole, each one write(2).
class RankLog {
 public:
  struct Settings {
    std::string folder = ".autotune_logs";
    int rank = 0;
    std::string run;  ///< as run_id_or_random takes it
    LogLevel level = LogLevel::Info;
  };

  explicit RankLog(const Settings& settings);
  ~RankLog();
  RankLog(const RankLog&) = delete;
  RankLog& operator=(const RankLog&) = delete;

  /// Writes a line, if `level` is not below the log's own.
  void write(LogLevel level, std::string_view event, std::span<const Field> fields) noexcept;
  void write(LogLevel level, std::string_view event, std::initializer_list<Field> fields) noexcept {
    write(level, event, std::span<const Field>(fields.begin(), fields.size()));
  }

  /// The process turns out to be another rank, whose file has its lines from now on: first its
  /// `start`, which is the caller's to write. A last line here says so, and readers move what stood
  /// before it. Lines of other threads meanwhile may go to either file.
  void become(int rank) noexcept;

  /// Waits until the lines so far are written: two seconds at most, once while the disk stands
  /// still.
  void flush() const noexcept;
  /// As flush(), 100 ms at most; takes no lock and no memory.
  void flush_in_signal_handler() const noexcept;

  /// Whether a line of this level would be written.
  [[nodiscard]] bool wants(LogLevel level) const noexcept;

  [[nodiscard]] const std::string& path() const noexcept;
  /// These three wait as flush() does.
  [[nodiscard]] std::uint64_t lines_written() const noexcept;
  [[nodiscard]] std::uint64_t lines_lost() const noexcept;
  /// `errno` of the last line that was lost; 0 if none was.
  [[nodiscard]] int last_error() const noexcept;

 private:
  class Writer;
  std::unique_ptr<Writer> writer_;
};

}  // namespace contextune::log
