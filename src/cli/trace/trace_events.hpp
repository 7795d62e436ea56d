#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

namespace contextune::cli {

/// Nanoseconds since the trace began.
using TraceTime = std::int64_t;

/// A slice that lasts so long can be seen and pointed at.
inline constexpr TraceTime least_pointed_at = 1000;

/// A timeline of Chrome's trace events: a process, and a track of it. Readers know a track by its
/// own number alone, so no two have the same, nor that of a process.
struct TraceTrack {
  std::uint32_t process = 0;
  std::uint32_t track = 0;
};

/// `"name":value` pairs behind one another, as an event's `args` hold them. What is not a number
/// is left out.
class TraceArguments {
 public:
  TraceArguments& add(std::string_view name, std::string_view text);
  TraceArguments& add(std::string_view name, const char* text) {
    return add(name, std::string_view(text));
  }
  TraceArguments& add(std::string_view name, std::uint64_t number);
  TraceArguments& add(std::string_view name, int number);
  TraceArguments& add(std::string_view name, double number);
  TraceArguments& add(std::string_view name, bool yes);
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  std::string& next(std::string_view name);
  std::string text_;
};

/// Writes Chrome's JSON trace events, one a line, as they come. Readers sort them by time.
class TraceEvents {
 public:
  /// Begins the file.
  explicit TraceEvents(std::ostream& out);
  /// Ends it. `about` is told of the whole trace.
  void finish(const TraceArguments& about);

  /// @param place among the others of its kind, ascending
  void name_process(std::uint32_t process, std::string_view name, std::size_t place);
  void name_track(TraceTrack track, std::string_view name);

  void slice(TraceTrack track, std::string_view name, std::string_view category, TraceTime begin,
             TraceTime duration, const TraceArguments& arguments);
  void instant(TraceTrack track, std::string_view name, std::string_view category, TraceTime at,
               const TraceArguments& arguments);
  void counter(std::uint32_t process, std::string_view name, TraceTime at, std::string_view unit,
               double value);
  /// An arrow between the slices that are under way there then.
  void flow(std::string_view name, TraceTrack from, TraceTime left, TraceTrack to,
            TraceTime arrived);

  [[nodiscard]] std::uint64_t num_events() const noexcept { return num_events_; }

 private:
  void begin_event(char phase, TraceTrack track);
  void add_time(std::string_view name, TraceTime time);
  void add_names(std::string_view name, std::string_view category);
  void end_event(const TraceArguments* arguments);
  void flow_end(char phase, std::string_view name, TraceTrack track, TraceTime at);

  std::ostream& out_;
  std::string line_;
  std::uint64_t num_events_ = 0;
  std::uint64_t num_flows_ = 0;
};

/// `text` between quotes, as JSON wants it: characters that a terminal could take for a command are
/// escaped, and bytes that are not UTF-8 are replaced.
void append_json_text(std::string& json, std::string_view text);

}  // namespace contextune::cli
