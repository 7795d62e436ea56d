#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <contextune/options.hpp>

namespace contextune {

enum class OptionScope { Region, Choice, Process };

/// A row of the options table, as documentation, `--help` and the environment parser see it.
struct OptionInfo {
  std::string_view name;     ///< field of Options: "n_warmup"
  std::string flag;          ///< "--n-warmup"
  std::string variable;      ///< "CONTEXTUNE_N_WARMUP"
  std::string allowed;       ///< "a whole number, 0 to 1000", "table, interleaved or racing"
  std::string default_text;  ///< as option_text of a fresh Options
  OptionScope scope = OptionScope::Process;
  bool is_switch = false;        ///< a flag of its own is enough: --discover, --auto
  std::string_view meaning;      ///< one sentence, without the full stop
  std::string_view placeholder;  ///< of its value in --help: "FILE", "FOLDER", "VALUE"
  std::vector<std::string_view>
      words;  ///< values to suggest; behind one that ends in ':' text follows
};

/// All options, in the order of options.def. Built at first use.
[[nodiscard]] std::span<const OptionInfo> option_table();

/// Sets one option from text. `name` may be written with dashes or underscores, in either case.
/// Returns the empty string, or what is wrong: the option, the value, what is allowed; `options` is
/// then unchanged.
[[nodiscard]] std::string parse_option(Options& options, std::string_view name,
                                       std::string_view text);

/// The option's value as parse_option reads it. @throws Error if there is no such option
[[nodiscard]] std::string option_text(const Options& options, std::string_view name);

[[nodiscard]] std::string_view to_string(Mode mode);
[[nodiscard]] std::string_view to_string(ScheduleKind kind);
[[nodiscard]] std::string_view to_string(Selection selection);
[[nodiscard]] std::string_view to_string(TimerKind timer);
[[nodiscard]] std::string_view to_string(LogLevel level);
[[nodiscard]] std::string_view to_string(Exactness exactness);
[[nodiscard]] std::string_view to_string(Distributed distributed);

}  // namespace contextune
