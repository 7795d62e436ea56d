#include "cli/run/run_conditions.hpp"

#include <algorithm>
#include <array>
#include <contextune/buckets.hpp>
#include <contextune/error.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "cli/run/forced_pins.hpp"
#include "cli/setup/space_files.hpp"
#include "collective/collective.hpp"
#include "intercept/marks/region_mark.hpp"
#include "space/kernel_name.hpp"

namespace contextune::cli {
namespace {

void require_readable(const Options& options) {
  std::vector<std::string> faults;
  (void)intercept::parse_region_marks(options.region, faults);
  if (!faults.empty()) throw Error(faults.front());
  const auto require = [](std::string_view option, const std::string& text, auto&& read) {
    try {
      if (!text.empty()) read(text);
    } catch (const Error& error) {
      throw Error("option " + std::string(option) + ": " + error.what());
    }
  };
  const auto read_pattern = [](const std::string& text) { (void)intercept::NamePattern(text); };
  require("only", options.only, read_pattern);
  require("exclude", options.exclude, read_pattern);
  require("buckets", options.buckets, [](const std::string& text) { (void)Buckets::parse(text); });
}

/// The names that the options only and exclude select. As in the program, each is looked for in any
/// of the names that a thing has.
class Selected {
 public:
  explicit Selected(const Options& options) {
    if (!options.only.empty()) only_.emplace(options.only);
    if (!options.exclude.empty()) exclude_.emplace(options.exclude);
  }
  [[nodiscard]] bool leaves(const std::vector<std::string>& names) const {
    const auto is_found = [&](const std::optional<intercept::NamePattern>& pattern) {
      return std::ranges::any_of(names,
                                 [&](const std::string& name) { return pattern->finds(name); });
    };
    return (!only_ || is_found(only_)) && (!exclude_ || !is_found(exclude_));
  }
  /// Whether exclude finds something in whatever can be a name.
  [[nodiscard]] bool excludes_all() const {
    constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    std::vector<std::string> names = {"a_longer_name", "name_space::kernel<float, 64>"};
    for (const char letter : letters) names.emplace_back(1, letter);
    return exclude_ && std::ranges::none_of(
                           names, [&](const std::string& name) { return !exclude_->finds(name); });
  }

 private:
  std::optional<intercept::NamePattern> only_;
  std::optional<intercept::NamePattern> exclude_;
};

/// "all_gather" and "ncclAllGather".
std::vector<std::string> names_of_collective(std::string_view name) {
  std::vector<std::string> names = {std::string(name), "nccl"};
  bool begins_word = true;
  for (const char letter : name) {
    const bool is_raised = begins_word && letter >= 'a' && letter <= 'z';
    begins_word = letter == '_';
    if (!begins_word) names[1] += is_raised ? static_cast<char>(letter - 'a' + 'A') : letter;
  }
  if (name == "broadcast") names.emplace_back("ncclBcast");
  return names;
}

constexpr std::array<collective::Function, 5> collectives = {
    collective::Function::AllGather, collective::Function::AllReduce,
    collective::Function::ReduceScatter, collective::Function::Broadcast,
    collective::Function::Reduce};

std::string given(const Options& options) {
  std::string text;
  if (!options.only.empty()) text += "--only '" + options.only + "'";
  if (!options.exclude.empty())
    text += (text.empty() ? "--exclude '" : " and --exclude '") + options.exclude + "'";
  return text;
}

// Where more may be tuned than the files declare, nothing is known.
void require_something(const Options& options, const SpaceFiles& spaces) {
  if (options.only.empty() && options.exclude.empty()) return;
  const Selected selected(options);
  if (selected.excludes_all() || options.only == options.exclude) {
    throw Error(given(options) +
                " leaves no kernel and no collective to be tuned, whatever the program launches");
  }
  std::string declared;
  const AutoKnobs& knobs = options.auto_knobs;
  bool is_left = !spaces.all_known || knobs.attributes;
  const auto see = [&](std::string_view shown, const std::vector<std::string>& names) {
    declared.append(declared.empty() ? "" : ", ").append(shown);
    is_left = is_left || selected.leaves(names);
  };
  for (const space::SpaceFile& file : spaces.files) {
    is_left = is_left || !file.choices().empty();  // tuned whatever their name
    for (const auto& rule : file.rules()) {
      const std::string_view name = rule->kernel();
      see(name, {std::string(name), space::normalised_name(name)});
    }
    for (const auto& collective : file.collectives())
      see(collective.name, names_of_collective(collective.name));
  }
  if (knobs.collectives) {
    is_left = is_left || std::ranges::any_of(collectives, [&](auto function) {
                return selected.leaves(names_of_collective(collective::name_of(function)));
              });
  }
  if (is_left || declared.empty()) return;
  throw Error(given(options) + " leaves nothing of what the space files declare: " + declared);
}

}  // namespace

void require_possible(const RunSetup& setup) {
  const Options& options = setup.options;
  require_readable(options);
  if (const std::string why = why_not_writable(setup.log_folder); !why.empty()) {
    throw Error("the log folder " + setup.log_folder + " cannot be written (" + why +
                "); give another one with --log-dir");
  }
  const SpaceFiles spaces = load_space_files(options.space);
  require_pins(options.force, spaces);
  if (!options.discover) require_something(options, spaces);
}

}  // namespace contextune::cli
