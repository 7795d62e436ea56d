#include "cli/words/command_line.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <contextune/error.hpp>
#include <map>
#include <optional>
#include <span>

#include "cli/words/documentation.hpp"
#include "core/value/fallback_reason.hpp"
#include "core/value/option_table.hpp"
#include "core/value/parse_number.hpp"
#include "core/value/take_until.hpp"
#include "intercept/marks/region_mark.hpp"
#include "space/nearest_name.hpp"

namespace contextune::cli {
namespace {

using Words = std::vector<std::string>;

// An option that takes a list may be given several times.
std::string_view separator_of(std::string_view option) {
  if (option == "region") return ";";
  return option == "space" ? ":" : "";
}

std::string joined(const Words& words, std::string_view separator) {
  if (separator.empty()) return words.back();
  std::string text;
  for (const std::string& word : words) text.append(text.empty() ? "" : separator).append(word);
  return text;
}

bool takes_value(std::string_view flag) {
  constexpr std::array<std::string_view, 7> flags{
      "--space-out", "-n", "--num-ranks", "--prove", "--clock", "--progress", "--color"};
  if (std::ranges::find(flags, flag) != flags.end()) return true;
  return std::ranges::any_of(option_table(), [&](const OptionInfo& option) {
    return option.flag == flag && !option.is_switch;
  });
}

// Where the program begins: behind "--", or at the first word that belongs to no flag of ours.
std::size_t command_begin(const Words& words) {
  std::size_t i = 0;
  while (i < words.size()) {
    if (words[i] == "--") return i + 1;
    if (!words[i].starts_with('-')) return i;
    i += takes_value(words[i]) ? 2U : 1U;
  }
  return words.size();
}

// `--auto WORDS` as `--auto=WORDS`: the flag alone is enough, and then the program may follow.
void join_auto(Words& words) {
  for (std::size_t i = 0; i + 1 < words.size() && words[i] != "--" && words[i].starts_with('-');
       i += takes_value(words[i]) ? 2U : 1U) {
    Options ignored;
    if (words[i] != "--auto" || !parse_option(ignored, "auto", words[i + 1]).empty()) continue;
    words[i] += "=" + words[i + 1];
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
}

Words take_command(Words& words) {
  const std::size_t begin = command_begin(words);
  Words command(words.begin() + static_cast<std::ptrdiff_t>(begin), words.end());
  words.resize(begin);
  if (!words.empty() && words.back() == "--") words.pop_back();
  return command;
}

// Takes the words that belong to no flag. CLI11 would make a list of a word in brackets where there
// may be several.
Words take_arguments(Words& words, const Words& with_value) {
  Words arguments;
  Words flags;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--") {
      arguments.insert(arguments.end(), words.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                       words.end());
      break;
    }
    if (words[i].size() < 2 || !words[i].starts_with('-')) {
      arguments.push_back(words[i]);
      continue;
    }
    flags.push_back(words[i]);
    const bool has_value = std::ranges::find(with_value, words[i]) != with_value.end();
    if (has_value && i + 1 < words.size()) flags.push_back(words[++i]);
  }
  words = std::move(flags);
  return arguments;
}

// "; did you mean 'list'?", or nothing where no name is near.
std::string did_you_mean(const std::string& word, std::span<const std::string_view> names,
                         const std::string& quote = "'") {
  const std::string_view meant = space::nearest_name(word, names);
  if (meant.empty()) return {};
  return "; did you mean " + quote + std::string(meant) + quote + "?";
}

// Words of an option, and what they mean.
template <class Value>
using Choices = std::map<std::string, Value>;

const Choices<ColourUse>& colour_words() {
  static const Choices<ColourUse> words = {
      {"auto", ColourUse::Auto}, {"always", ColourUse::Always}, {"never", ColourUse::Never}};
  return words;
}

const Choices<ProgressUse>& progress_words() {
  static const Choices<ProgressUse> words = {
      {"auto", ProgressUse::Auto}, {"always", ProgressUse::Always}, {"never", ProgressUse::Never}};
  return words;
}

template <class Value>
void add_choice(CLI::App& app, const std::string& flag, Value& value, const Choices<Value>& words) {
  app.add_option_function<std::string>(
         flag, [&value, &words](const std::string& word) { value = words.at(word); })
      ->check(CLI::IsMember(words));
}

// CLI11 parses, and knows nothing of how help is written.
class Parser {
 public:
  explicit Parser(std::string help) {
    app_.set_help_flag("-h,--help");
    app_.formatter_fn([text = std::move(help)](const CLI::App*, const std::string&,
                                               CLI::AppFormatMode) { return text; });
  }
  CLI::App& app() { return app_; }

  // Words that the shell suggests for the flag's value.
  void suggest(const CLI::Option* option, Words words) { suggested_[option] = std::move(words); }

  // Empty: parsed. Else what to do instead.
  std::optional<Request> parse(Words words, std::string_view command, int failure) {
    if (std::ranges::find(words, "--version") != words.end()) return TextRequest{version_text()};
    const std::string unknown = unknown_flag(words);
    std::reverse(words.begin(), words.end());
    try {
      app_.parse(std::move(words));
    } catch (const CLI::CallForHelp&) {
      return HelpRequest{app_.help(), flags()};
    } catch (const CLI::ParseError& error) {
      return UsageError{"contextune " + std::string(command) + ": " +
                            (unknown.empty() ? error.what() : unknown) + "; `contextune " +
                            std::string(command) + " --help` tells more",
                        failure};
    }
    return std::nullopt;
  }

 private:
  [[nodiscard]] std::vector<Flag> flags() const {
    std::vector<Flag> all;
    for (const CLI::Option* option : app_.get_options()) {
      Flag flag;
      flag.placeholder = checked_placeholder(option->get_type_name());
      flag.words = words_of(option);
      if (option->get_items_expected_max() > 0) flag.value = Flag::Value::Required;
      if (option->get_items_expected_min() == 0 && !flag.words.empty())
        flag.value = Flag::Value::Optional;
      Flag negative;
      for (const std::string& name : option->get_snames()) flag.names.push_back("-" + name);
      for (const std::string& name : option->get_lnames()) {
        Flag& named = option->check_fname(name) ? negative : flag;
        named.names.push_back("--" + name);
      }
      if (!flag.names.empty()) all.push_back(std::move(flag));
      if (!negative.names.empty()) all.push_back(std::move(negative));
    }
    all.push_back({{"--version"}, Flag::Value::None, {}, {}});
    return all;
  }

  // "FILE" of "TEXT:FILE", as a check for an existing one calls itself.
  static std::string checked_placeholder(const std::string& type) {
    if (type.find("FILE") != type.npos || type.find("PATH") != type.npos) return "FILE";
    return type.find("DIR") != type.npos ? "FOLDER" : "";
  }

  // Those of suggest(), or those of a check for membership, which calls itself "{a,b}".
  [[nodiscard]] Words words_of(const CLI::Option* option) const {
    const auto suggested = suggested_.find(option);
    if (suggested != suggested_.end()) return suggested->second;
    const std::string type = option->get_type_name();
    const std::size_t open = type.find('{');
    const std::size_t close = type.find('}');
    if (open == type.npos || close == type.npos || close < open) return {};
    Words words;
    std::string_view list = std::string_view(type).substr(open + 1, close - open - 1);
    while (!list.empty()) {
      const std::string_view word = take_until(list, ',');
      words.emplace_back(word.substr(0, word.find("->")));  // of a map
    }
    return words;
  }

  // "there is no --regionn; did you mean --region?"; empty: all flags are known.
  [[nodiscard]] std::string unknown_flag(const Words& words) const {
    std::vector<std::string> known;
    for (const CLI::Option* option : app_.get_options()) {
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    }
    const std::vector<std::string_view> candidates(known.begin(), known.end());
    for (const std::string& word : words) {
      const std::string flag = word.substr(0, word.find('='));
      if (!flag.starts_with("--") || std::ranges::find(known, flag) != known.end()) continue;
      return "there is no " + flag + did_you_mean(flag, candidates, "");
    }
    return {};
  }

  CLI::App app_;
  std::map<const CLI::Option*, Words> suggested_;
};

template <typename Range>
Words as_words(const Range& range) {
  return {std::begin(range), std::end(range)};
}

Request parse_run(Words words) {
  RunRequest request;
  join_auto(words);
  request.command = take_command(words);
  Parser parser(run_help());
  std::map<std::string, Words> values;
  std::map<std::string, std::string> switches;
  for (const OptionInfo& option : option_table()) {
    const std::string name(option.name);
    if (option.is_switch) {
      const bool on = option.default_text != "off";
      const std::string names = on ? option.flag + ",!--no-" + option.flag.substr(2) : option.flag;
      parser.suggest(parser.app()
                         .add_flag(names, switches[name])
                         ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast),
                     as_words(option.words));
    } else {
      parser.suggest(
          parser.app().add_option(option.flag, values[name])->allow_extra_args(false),
          name == "region" ? as_words(intercept::region_mark_words()) : as_words(option.words));
    }
  }
  parser.app().add_option("--space-out", request.space_out);
  parser.app()
      .add_option("-n,--num-ranks", request.num_ranks)
      ->check(CLI::Range(1, most_local_ranks));
  parser.app().add_flag("--kill-on-failure", request.kill_on_failure);
  parser.app().add_option("--prove", request.prove)->check(CLI::Range(2, most_proving_rounds));
  parser.app().add_option("--clock", request.clock);
  add_choice(parser.app(), "--progress", request.progress, progress_words());
  add_choice(parser.app(), "--color", request.colour, colour_words());
  if (auto other = parser.parse(std::move(words), "run", run_failed)) return *other;
  for (const OptionInfo& option : option_table()) {
    const std::string name(option.name);
    const bool given = option.is_switch ? !switches[name].empty() : !values[name].empty();
    if (!given) continue;
    request.options.emplace_back(
        name, option.is_switch ? switches[name] : joined(values[name], separator_of(name)));
  }
  if (request.num_ranks > 0 && (!values["rank"].empty() || !values["world_size"].empty())) {
    return UsageError{
        "contextune run: -n starts all ranks itself, --rank and --world-size make one", run_failed};
  }
  if (request.kill_on_failure && request.num_ranks == 0) {
    return UsageError{
        "contextune run: --kill-on-failure is about ranks that -n starts, and there is no -n",
        run_failed};
  }
  if (request.prove > 0 && request.num_ranks > 0) {
    return UsageError{
        "contextune run: --prove runs one process again and again, and -n starts several at once",
        run_failed};
  }
  if (!request.clock.empty() && request.prove == 0) {
    return UsageError{"contextune run: --clock is read by --prove, and there is no --prove",
                      run_failed};
  }
  if (request.command.empty()) {
    return UsageError{
        "contextune run: no program was given: contextune run [options] -- PROGRAM "
        "ARGUMENTS; `contextune run --help` shows examples",
        run_failed};
  }
  return request;
}

Request parse_logs(Words words) {
  LogsRequest request;
  Parser parser(logs_help());
  parser.app().add_option("folder", request.folder);
  parser.app().add_option("--run", request.run);
  parser.app().add_option("--rank", request.rank)->check(CLI::NonNegativeNumber);
  parser.app().add_flag("--passes", request.passes);
  CLI::Option* const json = parser.app().add_flag("--json", request.json);
  CLI::Option* const nccl_csv =
      parser.app().add_option("--nccl-csv", request.nccl_csv)->excludes(json);
  parser.app().add_option("--perfetto", request.perfetto)->excludes(json)->excludes(nccl_csv);
  parser.app().add_option("--csv", request.csv)->excludes(json)->excludes(nccl_csv);
  add_choice(parser.app(), "--color", request.colour, colour_words());
  if (auto other = parser.parse(std::move(words), "logs", 2)) return *other;
  if (request.perfetto == "-" && request.csv == "-") {
    return UsageError{
        "contextune logs: --perfetto and --csv cannot both go to standard output; "
        "name a file for one of them"};
  }
  return request;
}

Request parse_report(Words words) {
  ReportRequest request;
  FollowRequest live;
  bool follow = false;
  Words folders = take_arguments(words, {"-o", "--output", "--run", "--port"});
  Parser parser(report_help());
  CLI::Option* const file = parser.app().add_option("-o,--output", request.file);
  parser.app().add_option("--run", request.run);
  CLI::Option* const force = parser.app().add_flag("--force", request.force);
  CLI::Option* const wanted =
      parser.app().add_flag("--follow", follow)->excludes(file)->excludes(force);
  parser.app().add_option("--port", live.port)->needs(wanted);
  if (auto other = parser.parse(std::move(words), "report", 2)) return *other;
  if (folders.size() > 1) {
    return UsageError{
        "contextune report: one folder is read, and several were given; `contextune report --help` "
        "tells more"};
  }
  if (!folders.empty()) request.folder = std::move(folders.front());
  if (!follow) return request;
  live.folder = std::move(request.folder);
  live.run = std::move(request.run);
  return live;
}

Request parse_doctor(Words words) {
  DoctorRequest request;
  request.command = take_command(words);
  Parser parser(doctor_help());
  parser.app().add_option("--space", request.space);
  add_choice(parser.app(), "--color", request.colour, colour_words());
  if (auto other = parser.parse(std::move(words), "doctor", 2)) return *other;
  return request;
}

Request parse_build(Words words) {
  BuildRequest request;
  const auto options = std::find(words.begin(), words.end(), "--");
  if (options != words.end()) request.options.assign(options + 1, words.end());
  words.erase(options, words.end());
  Parser parser(build_help());
  parser.app().add_option("source", request.source)->required();
  parser.app().add_option("kernel", request.kernel)->required();
  parser.app().add_option("capability", request.compute_capability)->required();
  if (auto other = parser.parse(std::move(words), "build", 2)) return *other;
  return request;
}

Request parse_kernels(Words words) {
  KernelsRequest request;
  request.files = take_arguments(words, {});
  Parser parser(kernels_help());
  parser.app().add_flag("--all", request.all);
  parser.app().add_flag("--json", request.json);
  if (auto other = parser.parse(std::move(words), "kernels", 2)) return *other;
  if (request.files.empty()) {
    return UsageError{
        "contextune kernels: no file was given; `contextune kernels --help` tells more"};
  }
  return request;
}

struct StoreAction {
  StoreRequest::Action action;
  std::string_view arguments;  ///< as the help writes them
  std::size_t fewest = 0;
  std::size_t most = 0;
  std::string_view flags;  ///< that it takes, each between blanks
};

const std::map<std::string_view, StoreAction>& store_actions() {
  using enum StoreRequest::Action;
  static const std::map<std::string_view, StoreAction> actions = {
      {"list", {List, "", 0, 0, " --json "}},
      {"show", {Show, "NAME", 1, 1, " --json --history "}},
      {"diff", {Diff, "A B", 2, 2, " --json "}},
      {"merge", {Merge, "FOLDER...", 1, 4096, " "}},
      {"check", {Check, "", 0, 0, " --json "}},
      {"remove", {Remove, "NAME", 1, 1, " "}},
      {"export", {Export, "NAME", 1, 1, " --site --t4 --nccl-csv "}},
      {"blamed", {Blamed, "", 0, 0, " --forget "}}};
  return actions;
}

UsageError wrong_store_use(const std::string& what) {
  return {"contextune store: " + what + "; `contextune store --help` tells more"};
}

Request parse_store(Words words) {
  StoreRequest request;
  Words arguments = take_arguments(words, {"--cache-dir", "--site", "--t4", "--nccl-csv"});
  Parser parser(store_help());
  parser.app().add_option("--cache-dir", request.cache_dir);
  std::vector<CLI::Option*> flags = {parser.app().add_flag("--json", request.json),
                                     parser.app().add_flag("--history", request.history),
                                     parser.app().add_flag("--forget", request.forget),
                                     parser.app().add_option("--site", request.site),
                                     parser.app().add_option("--t4", request.t4),
                                     parser.app().add_option("--nccl-csv", request.nccl_csv)};
  if (auto other = parser.parse(std::move(words), "store", 2)) return *other;
  if (arguments.empty()) return UsageError{store_help()};
  const std::string name = std::move(arguments.front());
  request.arguments.assign(arguments.begin() + 1, arguments.end());
  const auto found = store_actions().find(name);
  if (found == store_actions().end()) {
    std::vector<std::string_view> names;
    for (const auto& [known, action] : store_actions()) names.push_back(known);
    return wrong_store_use("there is no '" + name + "'" + did_you_mean(name, names) +
                           "; list, show, diff, merge, check, remove, export and blamed are");
  }
  const StoreAction& action = found->second;
  request.action = action.action;
  for (const CLI::Option* flag : flags) {
    if (flag->count() > 0 && action.flags.find(" " + flag->get_name() + " ") == action.flags.npos)
      return wrong_store_use(name + " takes no " + flag->get_name());
  }
  const std::size_t count = request.arguments.size();
  if (count < action.fewest || count > action.most) {
    return wrong_store_use(name + " takes " +
                           (action.most == 0 ? "no argument" : std::string(action.arguments)));
  }
  if (request.action == StoreRequest::Action::Export &&
      request.t4.empty() == request.nccl_csv.empty()) {
    return wrong_store_use("export writes one of --t4 FILE and --nccl-csv FILE");
  }
  return request;
}

// "2%" or "0.02". Nothing: it is neither, or more than the whole.
std::optional<double> share_of(std::string text) {
  const bool is_percent = text.ends_with('%');
  if (is_percent) text.pop_back();
  while (text.ends_with(' ')) text.pop_back();
  const auto number = parse_number<double>(text);
  const double share = number.value_or(-1) / (is_percent ? 100 : 1);
  return share >= 0 && share <= 1 ? std::optional(share) : std::nullopt;
}

Request parse_compare(Words words) {
  CompareRequest request;
  std::string margin;
  std::string fail_on;
  const Words arguments =
      take_arguments(words, {"--run-a", "--run-b", "--margin", "--fail-on", "--color"});
  Parser parser(compare_help());
  parser.app().add_option("--run-a", request.run_a);
  parser.app().add_option("--run-b", request.run_b);
  parser.app().add_option("--margin", margin);
  parser.app().add_option("--fail-on", fail_on)->check(CLI::IsMember({"slower"}));
  parser.app().add_flag("--json", request.json);
  add_choice(parser.app(), "--color", request.colour, colour_words());
  if (auto other = parser.parse(std::move(words), "compare", 2)) return *other;
  const auto wrong = [](const std::string& what) {
    return UsageError{"contextune compare: " + what + "; `contextune compare --help` tells more"};
  };
  const bool is_one = arguments.size() == 1 && !(request.run_a + request.run_b).empty();
  if (arguments.size() != 2 && !is_one)
    return wrong("give A and B, or one folder of rank logs with --run-a and --run-b");
  request.a = arguments.front();
  if (!is_one) request.b = arguments.back();
  if (request.a.empty() || (!is_one && request.b.empty())) return wrong("a name is empty");
  request.fail_on_slower = !fail_on.empty();
  if (margin.empty()) return request;
  const auto share = share_of(margin);
  if (!share) return wrong("--margin is '" + margin + "'; give a share such as 2% or 0.02");
  request.margin = *share;
  return request;
}

Request parse_table(Words words, std::string_view command, std::string (*table)()) {
  bool markdown = false;
  Parser parser(
      "contextune " + std::string(command) +
      " --markdown\n\nPrints the table of the page that documents them, made from the code.\n");
  parser.app().add_flag("--markdown", markdown);
  if (auto other = parser.parse(std::move(words), command, 2)) return *other;
  return TextRequest{table()};
}

Request parse_reasons(Words words) {
  bool markdown = false;
  std::vector<std::string> named;
  Parser parser(
      "contextune reasons [REASON...] [--markdown]\n\n"
      "  contextune reasons replay_memory\n\n"
      "Says what a reason in the rank log means, what causes it and what to do; of all if none is "
      "named.\n--markdown prints the table of the page that documents them.\n");
  parser.app().add_flag("--markdown", markdown);
  parser.app().add_option("reason", named);
  if (auto other = parser.parse(std::move(words), "reasons", 2)) return *other;
  if (markdown) return TextRequest{reasons_markdown()};
  try {
    return TextRequest{reasons_text(named)};
  } catch (const Error& error) {
    return UsageError{std::string("contextune reasons: ") + error.what()};
  }
}

Request parse_completion(Words words) {
  const Words shells = take_arguments(words, {});
  Parser parser(completion_help());
  if (auto other = parser.parse(std::move(words), "completion", 2)) return *other;
  const auto known = shell_names();
  if (shells.size() == 1 && std::ranges::find(known, shells.front()) != known.end())
    return CompletionRequest{shells.front()};
  return UsageError{"contextune completion: " +
                    (shells.size() == 1 ? "there is no '" + shells.front() + "'" +
                                              did_you_mean(shells.front(), known)
                                        : std::string("it takes the name of one shell")) +
                    "; bash, zsh and fish are"};
}

Request parse_manual(Words words) {
  ManualRequest request;
  const Words commands = take_arguments(words, {"--folder"});
  Parser parser(manual_help());
  parser.app().add_option("--folder", request.folder);
  if (auto other = parser.parse(std::move(words), "manual", 2)) return *other;
  if (commands.empty()) return request;
  if (commands.size() > 1)
    return UsageError{
        "contextune manual: it takes one command; `contextune manual --help` tells more"};
  request.command = commands.front();
  if (help_of(request.command)) return request;
  const auto known = command_names();
  return UsageError{"contextune manual: there is no page of a command '" + request.command + "'" +
                    did_you_mean(request.command, known) +
                    "; `contextune --help` shows what there is"};
}

Request parse_options(Words words) {
  return parse_table(std::move(words), "options", options_markdown);
}

Request parse_help(Words) {  // NOLINT(performance-unnecessary-value-param): as all of the table
  return TextRequest{main_help()};
}

struct Command {
  std::string_view name;
  Request (*parse)(Words);
};

// The help of each is read where shells complete and pages are written: a row is all that a command
// needs.
constexpr std::array<Command, 13> commands = {{{"run", parse_run},
                                               {"logs", parse_logs},
                                               {"report", parse_report},
                                               {"compare", parse_compare},
                                               {"store", parse_store},
                                               {"doctor", parse_doctor},
                                               {"build", parse_build},
                                               {"kernels", parse_kernels},
                                               {"options", parse_options},
                                               {"reasons", parse_reasons},
                                               {"completion", parse_completion},
                                               {"manual", parse_manual},
                                               {"help", parse_help}}};

}  // namespace

Request parse_command_line(const std::vector<std::string>& arguments) {
  if (arguments.empty()) return UsageError{main_help(), 2};
  const std::string& command = arguments.front();
  const Words words(arguments.begin() + 1, arguments.end());
  for (const Command& known : commands)
    if (known.name == command) return known.parse(words);
  if (command == "--help" || command == "-h") return TextRequest{main_help()};
  if (command == "--version") return TextRequest{version_text()};
  return UsageError{"contextune: there is no command '" + command + "'" +
                    did_you_mean(command, command_names()) +
                    "; `contextune --help` shows what there is"};
}

std::vector<std::string_view> command_names() {
  std::vector<std::string_view> names;
  names.reserve(commands.size());
  for (const Command& command : commands) names.push_back(command.name);
  return names;
}

std::optional<HelpRequest> help_of(std::string_view command) {
  Request request = parse_command_line({std::string(command), "--help"});
  if (auto* const help = std::get_if<HelpRequest>(&request)) return std::move(*help);
  return std::nullopt;
}

std::vector<std::string_view> shell_names() {
  return {"bash", "zsh", "fish"};
}

std::vector<std::string_view> words_of_argument(std::string_view placeholder) {
  if (placeholder == "SHELL") return shell_names();
  std::vector<std::string_view> words;
  if (placeholder == "COMMAND")
    for (const std::string_view name : command_names())
      if (help_of(name)) words.push_back(name);
  if (placeholder == "ACTION")
    for (const auto& [name, action] : store_actions()) words.push_back(name);
  if (placeholder == "REASON")
    for (const FallbackInfo& reason : fallback_table()) words.push_back(reason.word);
  return words;
}

}  // namespace contextune::cli
