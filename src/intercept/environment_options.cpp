#include "intercept/environment_options.hpp"

#include <charconv>
#include <cstdlib>
#include <cstring>

#include "core/option_table.hpp"

namespace contextune::intercept {

Options options_from_environment(const Options& defaults, std::vector<std::string>& faults) {
  Options options = defaults;
  for (const OptionInfo& info : option_table()) {
    const char* text = std::getenv(info.variable.c_str());
    if (text == nullptr || *text == '\0') continue;
    const std::string wrong = parse_option(options, info.name, text);
    if (wrong.empty()) continue;
    faults.push_back(info.variable + "=" + text + ": " + wrong + "; its default, " +
                     (info.default_text.empty() ? "nothing" : info.default_text) + ", is used");
  }
  return options;
}

int rank_from_environment() noexcept {
  for (const char* name : {"CONTEXTUNE_RANK", "RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                           "PMI_RANK", "SLURM_PROCID"}) {
    const char* text = std::getenv(name);
    if (text == nullptr) continue;
    const char* end = text + std::strlen(text);
    int rank = 0;
    const auto [stop, error] = std::from_chars(text, end, rank);
    if (error == std::errc{} && stop == end && rank >= 0) return rank;
  }
  return 0;
}

}  // namespace contextune::intercept
