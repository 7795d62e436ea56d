#include "cli/trace/trace_events.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "core/value/utf8.hpp"

namespace contextune::cli {
namespace {

constexpr std::string_view replacement = "\xef\xbf\xbd";  // U+FFFD

template <class Number>
void append_number(std::string& text, Number number) {
  std::array<char, 32> digits{};
  const auto result = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  text.append(digits.data(), result.ptr);
}

// Microseconds, as the format has times; all digits, so that readers compute with the same.
void append_time(std::string& text, TraceTime time) {
  append_number(text, time / 1000);
  const auto rest = static_cast<int>(time % 1000);
  if (rest == 0) return;
  text += '.';
  text += static_cast<char>('0' + rest / 100);
  text += static_cast<char>('0' + rest / 10 % 10);
  text += static_cast<char>('0' + rest % 10);
}

}  // namespace

void append_json_text(std::string& json, std::string_view text) {
  json += '"';
  while (!text.empty()) {
    const Utf8Character character = first_character(text);
    if (!character.valid) {
      json += replacement;
    } else if (character.code == '"' || character.code == '\\') {
      json += '\\';
      json += static_cast<char>(character.code);
    } else if (is_control(character.code)) {
      std::array<char, 8> escape{};
      std::snprintf(escape.data(), escape.size(), "\\u%04x", character.code & 0xffffU);
      json += escape.data();
    } else {
      json += text.substr(0, character.size_bytes);
    }
    text.remove_prefix(character.size_bytes);
  }
  json += '"';
}

std::string& TraceArguments::next(std::string_view name) {
  if (!text_.empty()) text_ += ',';
  append_json_text(text_, name);
  text_ += ':';
  return text_;
}

TraceArguments& TraceArguments::add(std::string_view name, std::string_view text) {
  append_json_text(next(name), text);
  return *this;
}

TraceArguments& TraceArguments::add(std::string_view name, std::uint64_t number) {
  append_number(next(name), number);
  return *this;
}

TraceArguments& TraceArguments::add(std::string_view name, int number) {
  append_number(next(name), number);
  return *this;
}

TraceArguments& TraceArguments::add(std::string_view name, double number) {
  if (!std::isfinite(number)) return *this;
  // As many digits as a measured time has, and not those that its unit's change has added.
  constexpr int significant = 9;
  std::array<char, 32> digits{};
  const auto result = std::to_chars(digits.data(), digits.data() + digits.size(), number,
                                    std::chars_format::general, significant);
  next(name).append(digits.data(), result.ptr);
  return *this;
}

TraceArguments& TraceArguments::add(std::string_view name, bool yes) {
  next(name) += yes ? "true" : "false";
  return *this;
}

TraceEvents::TraceEvents(std::ostream& out) : out_(out) {
  out_ << "{\"traceEvents\":[";
}

void TraceEvents::finish(const TraceArguments& about) {
  out_ << "\n],\"otherData\":{" << about.text() << "}}\n";
}

// Times and numbers come before names: some readers look for those without reading all of a name.
void TraceEvents::begin_event(char phase, TraceTrack track) {
  line_ = num_events_ == 0 ? "\n{\"ph\":\"" : ",\n{\"ph\":\"";
  ++num_events_;
  line_ += phase;
  line_ += "\",\"pid\":";
  append_number(line_, track.process);
  if (track.track == 0) return;
  line_ += ",\"tid\":";
  append_number(line_, track.track);
}

void TraceEvents::add_time(std::string_view name, TraceTime time) {
  line_ += ",\"";
  line_ += name;
  line_ += "\":";
  append_time(line_, time);
}

void TraceEvents::add_names(std::string_view name, std::string_view category) {
  line_ += ",\"name\":";
  append_json_text(line_, name);
  if (category.empty()) return;
  line_ += ",\"cat\":";
  append_json_text(line_, category);
}

void TraceEvents::end_event(const TraceArguments* arguments) {
  if (arguments != nullptr) {
    line_ += ",\"args\":{";
    line_ += arguments->text();
    line_ += '}';
  }
  line_ += '}';
  out_ << line_;
}

void TraceEvents::name_process(std::uint32_t process, std::string_view name, std::size_t place) {
  begin_event('M', {process, 0});
  add_names("process_name", {});
  end_event(&TraceArguments().add("name", name));
  begin_event('M', {process, 0});
  add_names("process_sort_index", {});
  end_event(&TraceArguments().add("sort_index", std::uint64_t{place}));
}

void TraceEvents::name_track(TraceTrack track, std::string_view name) {
  begin_event('M', track);
  add_names("thread_name", {});
  end_event(&TraceArguments().add("name", name));
  begin_event('M', track);
  add_names("thread_sort_index", {});
  end_event(&TraceArguments().add("sort_index", std::uint64_t{track.track}));
}

void TraceEvents::slice(TraceTrack track, std::string_view name, std::string_view category,
                        TraceTime begin, TraceTime duration, const TraceArguments& arguments) {
  begin_event('X', track);
  add_time("ts", begin);
  add_time("dur", duration);
  add_names(name, category);
  end_event(&arguments);
}

void TraceEvents::instant(TraceTrack track, std::string_view name, std::string_view category,
                          TraceTime at, const TraceArguments& arguments) {
  begin_event('i', track);
  add_time("ts", at);
  line_ += ",\"s\":\"t\"";
  add_names(name, category);
  end_event(&arguments);
}

void TraceEvents::counter(std::uint32_t process, std::string_view name, TraceTime at,
                          std::string_view unit, double value) {
  begin_event('C', {process, 0});
  add_time("ts", at);
  add_names(name, {});
  end_event(&TraceArguments().add(unit, value));
}

void TraceEvents::flow_end(char phase, std::string_view name, TraceTrack track, TraceTime at) {
  begin_event(phase, track);
  add_time("ts", at);
  line_ += ",\"id\":";
  append_number(line_, num_flows_);
  if (phase == 'f') line_ += R"(,"bp":"e")";
  add_names(name, "agreement");
  end_event(nullptr);
}

void TraceEvents::flow(std::string_view name, TraceTrack from, TraceTime left, TraceTrack to,
                       TraceTime arrived) {
  ++num_flows_;
  flow_end('s', name, from, left);
  flow_end('f', name, to, arrived);
}

}  // namespace contextune::cli
