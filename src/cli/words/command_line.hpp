#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "cli/words/colour.hpp"

namespace contextune::cli {

/// More local ranks than that are taken for a mistake.
inline constexpr int most_local_ranks = 1024;

/// Changes up to this share are taken for none by `compare`, unless --margin says another.
inline constexpr double usual_margin = 0.02;

/// Where the progress of a run is shown while it goes on, as --progress says.
enum class ProgressUse {
  Auto,    ///< on a terminal, and in the file of --report
  Always,  ///< also where it is no terminal, in lines
  Never
};

struct RunRequest {
  /// Options that were given, by name in the options table, with their text.
  std::vector<std::pair<std::string, std::string>> options;
  std::string space_out;  ///< empty: contextune.lua, and only if there is none yet
  int num_ranks = 0;      ///< 0: the program is started once, as whatever rank it is
  bool kill_on_failure = false;
  int prove = 0;  ///< rounds of a bare and a tuned run; 0: the program is run once, tuned
  /// For --prove: whose first group is the program's own time; empty: the wall clock alone.
  std::string clock;
  ProgressUse progress = ProgressUse::Auto;
  ColourUse colour = ColourUse::Auto;
  std::vector<std::string> command;
};

struct LogsRequest {
  std::string folder;   ///< empty: as the environment says
  std::string run;      ///< empty: the last one of each rank; "all"
  int rank = -1;        ///< whose passes are shown; -1: each, or the first that tuned together
  bool passes = false;  ///< also each site's config in every pass
  bool json = false;
  std::string nccl_csv;  ///< where the winners of collectives go; empty: nowhere
  ColourUse colour = ColourUse::Auto;
  std::string perfetto;  ///< where a trace for Perfetto goes, "-": standard output; empty: nowhere
  std::string csv;       ///< where a table of all trials goes, the same
};

struct ReportRequest {
  std::string folder;                           ///< empty: as the environment says
  std::string run;                              ///< empty: the last one of each rank; "all"
  std::string file = "contextune-report.html";  ///< where the page goes; "-": standard output
  bool force = false;                           ///< also in place of a file that is no such page
};

/// The same page, served while the logs grow.
struct FollowRequest {
  std::string folder;      ///< empty: as the environment says
  std::string run;         ///< empty: the last one of each rank; "all"
  std::uint16_t port = 0;  ///< 0: any that is free
};

struct DoctorRequest {
  std::string space;
  std::vector<std::string> command;
  ColourUse colour = ColourUse::Auto;
};

struct BuildRequest {
  std::string source;
  std::string kernel;
  int compute_capability = 0;  ///< 90 for 9.0
  std::vector<std::string> options;
};

struct KernelsRequest {
  std::vector<std::string> files;
  bool all = false;  ///< list every kernel
  bool json = false;
};

struct StoreRequest {
  enum class Action { List, Show, Diff, Merge, Check, Remove, Export, Blamed };
  Action action = Action::List;
  std::vector<std::string> arguments;  ///< of a number that the action takes
  std::string cache_dir;               ///< empty: as the environment says
  bool json = false;
  bool history = false;
  bool forget = false;
  std::string site;      ///< empty: all
  std::string t4;        ///< where results go in the T4 format; empty: nowhere
  std::string nccl_csv;  ///< where the winners of collectives go; empty: nowhere
};

struct CompareRequest {
  std::string a;      ///< a log folder or file, or a store or a file of one, or FOLDER:RUN
  std::string b;      ///< empty: as `a`
  std::string run_a;  ///< of a log; empty: the last one
  std::string run_b;
  double margin = usual_margin;
  bool json = false;
  bool fail_on_slower = false;
  ColourUse colour = ColourUse::Auto;
};

struct CompletionRequest {
  std::string shell;
};

struct ManualRequest {
  std::string command;  ///< empty: the page of contextune itself, or all pages with a folder
  std::string folder;   ///< where pages are written; empty: to standard output
};

/// A flag as the parser of its command knows it.
struct Flag {
  enum class Value { None, Optional, Required };
  std::vector<std::string> names;  ///< "-n", "--num-ranks"
  Value value = Value::None;
  std::vector<std::string> words;  ///< values to suggest; behind one that ends in ':' text follows
  std::string placeholder;         ///< "FILE" or "FOLDER" where the parser checks for one
};

/// Answers --help of a command.
struct HelpRequest {
  std::string text;
  std::vector<Flag> flags;
};

/// Only something to print: a version, a table for the documentation.
struct TextRequest {
  std::string text;
};

/// The command line makes no sense.
struct UsageError {
  std::string text;
  int exit_status = 2;
};

using Request =
    std::variant<RunRequest, LogsRequest, ReportRequest, FollowRequest, DoctorRequest, BuildRequest,
                 KernelsRequest, StoreRequest, CompareRequest, CompletionRequest, ManualRequest,
                 HelpRequest, TextRequest, UsageError>;

/// Exit status of `contextune run` for its own failures, as that of env and timeout.
inline constexpr int run_failed = 125;

/// That --prove makes.
inline constexpr int most_proving_rounds = 1000;

[[nodiscard]] Request parse_command_line(const std::vector<std::string>& arguments);

/// All commands: "run", "logs", ...
[[nodiscard]] std::vector<std::string_view> command_names();

/// What `contextune COMMAND --help` answers; nothing for a command that has no help of its own.
[[nodiscard]] std::optional<HelpRequest> help_of(std::string_view command);

/// Shells that `contextune completion` knows.
[[nodiscard]] std::vector<std::string_view> shell_names();

/// Words that may stand for a placeholder of a synopsis, such as ACTION; none: any text.
[[nodiscard]] std::vector<std::string_view> words_of_argument(std::string_view placeholder);

}  // namespace contextune::cli
