#include "intercept/host/environment_options.hpp"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "core/value/option_table.hpp"
#include "environment/variables.hpp"

namespace contextune::intercept {
namespace {

/// How many letters must be put in, taken out or changed to make one of the other.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t change = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({change, diagonal + 1, row[j] + 1});
    }
  }
  return row[b.size()];
}

// Variables of ours that are no options.
constexpr std::string_view other_variables[] = {"CONTEXTUNE_RANK", "CONTEXTUNE_RUN_ID",
                                                "CONTEXTUNE_NVTX_CHAIN"};
// Further from every option it is more likely somebody else's variable than a slip.
constexpr std::size_t most_slips = 2;

/// The option's variable that `name` was probably meant to be; empty: `name` is right, or not ours.
std::string_view meant(std::string_view name) {
  std::string_view nearest;
  std::size_t least = most_slips + 1;
  for (const OptionInfo& info : option_table()) {
    const std::size_t distance = edit_distance(name, info.variable);
    if (distance == 0) return {};
    if (distance < least) nearest = info.variable;
    least = std::min(least, distance);
  }
  const bool known = std::find(std::begin(other_variables), std::end(other_variables), name) !=
                     std::end(other_variables);
  return known ? std::string_view{} : nearest;
}

}  // namespace

Options options_from_environment(const Options& defaults, std::vector<std::string>& faults) {
  Options options = defaults;
  for (const OptionInfo& info : option_table()) {
    const char* text = variable(info.variable);
    if (text == nullptr || *text == '\0') continue;
    const std::string wrong = parse_option(options, info.name, text);
    if (wrong.empty()) continue;
    faults.push_back(info.variable + "=" + text + ": " + wrong + "; its default, " +
                     (info.default_text.empty() ? "nothing" : info.default_text) + ", is used");
  }
  return options;
}

Options options_over(const Options& author) {
  std::vector<std::string> said_already;
  return options_from_environment(author, said_already);
}

void find_misspelt_variables(std::vector<std::string>& faults) {
  for (const std::string_view text : variables()) {
    const std::string_view name = text.substr(0, text.find('='));
    if (!name.starts_with("CONTEXTUNE_")) continue;
    if (const std::string_view option = meant(name); !option.empty()) {
      faults.push_back(std::string(name) + " is no variable of contextune and was ignored; " +
                       std::string(option) + " is");
    }
  }
}

}  // namespace contextune::intercept
