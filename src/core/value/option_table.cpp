#include "core/value/option_table.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>
#include <vector>

#include <contextune/error.hpp>
#include <contextune/value.hpp>

#include "core/value/launcher.hpp"
#include "core/value/parse_number.hpp"
#include "core/value/result_tolerance.hpp"

namespace contextune {
namespace {

template <typename Enum>
constexpr std::array<std::string_view, 0> words;
template <>
constexpr std::array<std::string_view, 4> words<Mode>{"auto", "body", "replay", "live"};
template <>
constexpr std::array<std::string_view, 3> words<ScheduleKind>{"table", "interleaved", "racing"};
template <>
constexpr std::array<std::string_view, 3> words<Selection>{"median", "mean", "min"};
template <>
constexpr std::array<std::string_view, 3> words<TimerKind>{"auto", "cupti", "events"};
template <>
constexpr std::array<std::string_view, 3> words<Distributed>{"auto", "off", "on"};
template <>
constexpr std::array<std::string_view, 3> words<Scope>{"auto", "global", "local"};
template <>
constexpr std::array<std::string_view, 3> words<Align>{"none", "pass", "sample"};
template <>
constexpr std::array<std::string_view, 2> words<Select>{"deferred", "immediate"};
template <>
constexpr std::array<std::string_view, 3> words<Fusion>{"auto", "on", "off"};
template <>
constexpr std::array<std::string_view, 3> words<Exactness>{"exact", "same-algorithm", "any"};
template <>
constexpr std::array<std::string_view, 3> words<Splice>{"off", "own", "all"};
template <>
constexpr std::array<std::string_view, 3> words<StoreUse>{"tune", "stored", "off"};
template <>
constexpr std::array<std::string_view, 3> words<LogLevel>{"debug", "info", "warn"};

struct AutoWord {
  std::string_view word;
  bool AutoKnobs::*knob;
};
constexpr std::array<AutoWord, 4> auto_words = {{{"chained", &AutoKnobs::chained},
                                                 {"gathered", &AutoKnobs::gathered},
                                                 {"collectives", &AutoKnobs::collectives},
                                                 {"attributes", &AutoKnobs::attributes}}};

template <typename Enum>
std::string_view word_of(Enum value) {
  return words<Enum>[static_cast<std::size_t>(value)];
}

bool is_bytes(std::string_view name) {
  return name == "replay_memory" || name == "comm_memory";
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// Smallest and largest value of the numeric options; the rest may be anything from 0 up.
struct Range {
  double least = 0;
  double most = 0;
};
Range range_of(std::string_view name) {
  if (name == "n_repeat" || name == "refine_candidates" || name == "refine_rounds" ||
      name == "max_sites") {
    return {1, 100000};
  }
  if (name == "n_warmup") return {0, 100000};
  if (name == "rank") return {-1, max_num_ranks - 1};
  if (name == "world_size") return {0, max_num_ranks};
  if (name == "confirm_min_pairs") return {2, 100000};
  if (name == "confirm_max_pairs") return {2, 100000};
  if (name == "margin") return {0, 1};
  if (name == "max_slowdown") return {0, 1000};
  if (name == "presync_timeout" || name == "trial_timeout") return {0.001, 3600};
  if (is_bytes(name)) return {0, 1e15};
  return {0, 1e9};
}

std::string plain(double number) {
  std::array<char, 32> buffer{};
  // Whole numbers in full: 100000, not 1e+05.
  char* const end = number == std::floor(number) && std::fabs(number) < 1e15
                        ? std::to_chars(buffer.data(), buffer.data() + buffer.size(),
                                        static_cast<long long>(number))
                              .ptr
                        : std::to_chars(buffer.data(), buffer.data() + buffer.size(), number).ptr;
  return {buffer.data(), end};
}

template <typename Enum>
std::string allowed_of(std::string_view, const Enum*) {
  std::string text;
  const auto& list = words<Enum>;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i > 0) text += i + 1 == list.size() ? " or " : ", ";
    text += list[i];
  }
  return text;
}
std::string allowed_of(std::string_view, const bool*) {
  return "on or off";
}
std::string allowed_of(std::string_view, const AutoKnobs*) {
  return "on, off, or some of chained, gathered, collectives and attributes, separated by commas";
}
std::string allowed_of(std::string_view name, const std::string*) {
  if (name == "tolerance")
    return "TYPE:SHARE with f16, bf16, f32 or f64 and a share below 1, such as f32:1e-5";
  return "any text";
}
std::string allowed_of(std::string_view name, const int*) {
  const Range range = range_of(name);
  return "a whole number, " + plain(range.least) + " to " + plain(range.most);
}
std::string allowed_of(std::string_view name, const double*) {
  const Range range = range_of(name);
  if (is_bytes(name)) return "a number of bytes, such as 16G or 512M";
  return "a number, " + plain(range.least) + " to " + plain(range.most);
}

template <typename Enum>
std::vector<std::string_view> words_of(std::string_view, const Enum*) {
  return {words<Enum>.begin(), words<Enum>.end()};
}
std::vector<std::string_view> words_of(std::string_view, const bool*) {
  return {"on", "off"};
}
std::vector<std::string_view> words_of(std::string_view, const AutoKnobs*) {
  std::vector<std::string_view> list = {"on", "off"};
  for (const AutoWord& one : auto_words) list.push_back(one.word);
  return list;
}
std::vector<std::string_view> words_of(std::string_view name, const std::string*) {
  if (name == "tolerance") return {"f16:", "bf16:", "f32:", "f64:"};
  if (name == "buckets") return {"pow2", "exact"};
  if (name == "address") return {"unix:"};
  return {};
}
std::vector<std::string_view> words_of(std::string_view, const int*) {
  return {};
}
std::vector<std::string_view> words_of(std::string_view, const double*) {
  return {};
}

std::string_view placeholder_of(std::string_view name) {
  if (name == "space" || name == "report") return "FILE";
  if (name == "cache_dir" || name == "log_dir") return "FOLDER";
  if (name == "only" || name == "exclude") return "REGEX";
  return "VALUE";
}

template <typename Enum>
bool read(std::string_view, const std::string& text, Enum& value) {
  const auto& list = words<Enum>;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i] != lower(text)) continue;
    value = static_cast<Enum>(i);
    return true;
  }
  return false;
}
bool read(std::string_view, const std::string& text, bool& value) {
  const std::string word = lower(text);
  const bool yes = word == "1" || word == "on" || word == "true" || word == "yes";
  const bool no = word == "0" || word == "off" || word == "false" || word == "no";
  if (yes || no) value = yes;
  return yes || no;
}
bool read(std::string_view name, const std::string& text, AutoKnobs& value) {
  bool all = false;
  if (lower(text) == "none" || read(name, text, all)) {
    value = {all, all, all, all};
    return true;
  }
  AutoKnobs named{false, false, false, false};
  std::string_view rest = text;
  while (true) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    const std::string word = lower(rest.substr(0, end));
    const auto* const known = std::find_if(auto_words.begin(), auto_words.end(),
                                           [&](const AutoWord& one) { return one.word == word; });
    if (known == auto_words.end()) return false;
    named.*known->knob = true;
    if (end == rest.size()) break;
    rest.remove_prefix(end + 1);
  }
  value = named;
  return true;
}
bool read(std::string_view name, const std::string& text, std::string& value) {
  if (name == "tolerance" && !text.empty() && !ResultTolerance::parse(text)) return false;
  value = text;
  return true;
}
std::optional<double> bytes_of_unit(std::string_view unit) {
  constexpr std::string_view letters = "kmgt";
  const std::string word = lower(unit);
  if (word.empty() || word == "b") return 1;
  const auto power = letters.find(word[0]);
  const std::string_view rest = std::string_view(word).substr(1);
  if (power == std::string_view::npos || !(rest.empty() || rest == "b" || rest == "ib")) return {};
  return std::pow(1024.0, static_cast<double>(power + 1));
}
bool read(std::string_view name, const std::string& text, double& value) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{}) return false;
  const std::string_view unit(stop, static_cast<std::size_t>(end - stop));
  const bool is_time = name == "max_time" || name == "presync_timeout" || name == "trial_timeout";
  if (is_bytes(name)) {
    const auto factor = bytes_of_unit(unit);
    if (!factor) return false;
    number *= *factor;
  } else if (unit == "%" && !is_time) {
    number /= 100;
  } else if (unit == "ms" && is_time) {
    number /= 1000;
  } else if (!unit.empty() && !(unit == "s" && is_time)) {
    return false;
  }
  const Range range = range_of(name);
  if (!(number >= range.least && number <= range.most)) return false;
  value = number;
  return true;
}
bool read(std::string_view name, const std::string& text, int& value) {
  const auto number = parse_number<int>(text);
  const Range range = range_of(name);
  if (!number || *number < range.least || *number > range.most) return false;
  value = *number;
  return true;
}

template <typename Enum>
std::string show(Enum value) {
  return std::string(word_of(value));
}
std::string show(bool value) {
  return value ? "on" : "off";
}
std::string show(const AutoKnobs& value) {
  std::string text;
  for (const AutoWord& one : auto_words)
    if (value.*one.knob) text.append(text.empty() ? "" : ",").append(one.word);
  return text.empty() ? "off" : text;
}
std::string show(int value) {
  return std::to_string(value);
}
std::string show(double value) {
  return plain(value);
}
std::string show(const std::string& value) {
  return value;
}

/// The name that users write: --auto is the field auto_knobs, as `auto` is a word of C++.
constexpr std::string_view public_name(std::string_view field) {
  return field == "auto_knobs" ? "auto" : field;
}

std::string spelled(std::string_view name, char separator, bool upper) {
  std::string out(name);
  for (char& c : out) {
    if (c == '_') c = separator;
    if (upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return out;
}

std::string field_name(std::string_view name) {
  std::string out = lower(name);
  if (out.starts_with("--")) out.erase(0, 2);
  if (out.starts_with("contextune_")) out.erase(0, 11);
  for (char& c : out)
    if (c == '-') c = '_';
  return out == "auto" ? "auto_knobs" : out;
}

template <typename Type>
std::string parse_field(std::string_view name, const std::string& text, Type& field) {
  if (read(name, text, field)) return {};
  return "option " + std::string(public_name(name)) + " is '" + text + "'; it must be " +
         allowed_of(name, &field);
}

template <typename Type>
OptionInfo make_info(std::string_view field, const Type& value, OptionScope scope,
                     std::string_view meaning) {
  const std::string_view name = public_name(field);
  return {name,
          "--" + spelled(name, '-', false),
          "CONTEXTUNE_" + spelled(name, '_', true),
          allowed_of(field, &value),
          show(value),
          scope,
          std::is_same_v<Type, bool> || std::is_same_v<Type, AutoKnobs>,
          meaning,
          placeholder_of(field),
          words_of(field, &value)};
}

std::vector<OptionInfo> build_table() {
  const Options defaults;
  std::vector<OptionInfo> options;
#define CONTEXTUNE_OPTION(type, name, default_value, scope, meaning) \
  options.push_back(make_info<type>(#name, defaults.name, OptionScope::scope, meaning));
#include <contextune/options.def>
#undef CONTEXTUNE_OPTION
  return options;
}

}  // namespace

std::span<const OptionInfo> option_table() {
  static const std::vector<OptionInfo> table = build_table();
  return table;
}

std::string parse_option(Options& options, std::string_view name, std::string_view text) {
  const std::string field = field_name(name);
  const std::string value(text);
#define CONTEXTUNE_OPTION(type, name, default_value, scope, meaning) \
  if (field == #name) return parse_field(field, value, options.name);
#include <contextune/options.def>
#undef CONTEXTUNE_OPTION
  return "there is no option '" + std::string(name) + "'; `contextune run --help` lists them";
}

std::string option_text(const Options& options, std::string_view name) {
  const std::string field = field_name(name);
#define CONTEXTUNE_OPTION(type, name, default_value, scope, meaning) \
  if (field == #name) return show(options.name);
#include <contextune/options.def>
#undef CONTEXTUNE_OPTION
  throw Error("there is no option '" + std::string(name) + "'; option_table() lists them");
}

std::string_view to_string(Mode mode) {
  return word_of(mode);
}
std::string_view to_string(ScheduleKind kind) {
  return word_of(kind);
}
std::string_view to_string(Selection selection) {
  return word_of(selection);
}
std::string_view to_string(TimerKind timer) {
  return word_of(timer);
}
std::string_view to_string(Exactness exactness) {
  return word_of(exactness);
}
std::string_view to_string(Distributed distributed) {
  return word_of(distributed);
}
std::string_view to_string(LogLevel level) {
  return word_of(level);
}

}  // namespace contextune
