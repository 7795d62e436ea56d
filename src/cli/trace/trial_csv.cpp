#include "cli/trace/trial_csv.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>

#include "log/line_time.hpp"
#include "log/logfmt.hpp"

namespace contextune::cli {
namespace {

constexpr std::string_view column_names =
    "run,rank,pid,region,site,key,config,parameters,pass,agreed,iteration,counts,status,launches,"
    "seconds,region_seconds,timer,sm_clock_hz,began,simulated\n";

// Cells that need no quotes are the same to every reader.
std::string cell_of(std::string_view text) {
  const std::string shown = log::printable(text);
  if (shown.find_first_of(",\"") == shown.npos) return shown;
  std::string cell = "\"";
  for (const char c : shown) {
    if (c == '"') cell += '"';
    cell += c;
  }
  return cell + '"';
}

class CsvRow {
 public:
  explicit CsvRow(const std::string& head) : text_(head) {}
  CsvRow& add(std::string_view cell) {
    text_.append(",").append(cell);
    return *this;
  }
  CsvRow& add(bool yes) { return add(std::string_view(yes ? "true" : "false")); }
  template <class Number>
  requires(!std::is_same_v<Number, bool> &&
           std::is_arithmetic_v<Number>) CsvRow& add(Number number) {
    if constexpr (std::is_floating_point_v<Number>)
      if (!std::isfinite(number)) return add(std::string_view());
    std::array<char, 32> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    return add(std::string_view(digits.data(), static_cast<std::size_t>(end - digits.data())));
  }
  [[nodiscard]] const std::string& end() { return text_ += '\n'; }

 private:
  std::string text_;
};

/// What is the same in all rows of a site.
struct SiteCells {
  std::string head;
  std::map<std::uint32_t, std::string> parameters;
  bool simulated = false;
};

void write_trial(const SiteCells& site, const log::TrialReport& trial, std::ostream& out) {
  CsvRow row(site.head);
  const auto parameters = site.parameters.find(trial.config);
  row.add(trial.config);
  row.add(parameters == site.parameters.end() ? std::string_view() : parameters->second);
  row.add(trial.pass).add(trial.agreed).add(trial.iteration);
  row.add(trial.iteration >= 0 && trial.status.empty());
  row.add(trial.status.empty() ? "measured" : cell_of(trial.status));
  row.add(trial.launches).add(trial.seconds).add(trial.region_seconds).add(cell_of(trial.timer));
  row.add(trial.sm_clock_hz)
      .add(trial.has_begin ? log::microseconds_text(trial.at) : std::string());
  out << row.add(site.simulated).end();
}

}  // namespace

std::uint64_t write_trial_csv(const std::vector<const log::ProcessReport*>& processes,
                              std::ostream& out) {
  std::uint64_t rows = 0;
  out << column_names;
  for (const log::ProcessReport* process : processes) {
    const std::string of_process =
        CsvRow(cell_of(process->run)).add(process->rank).add(process->pid).end();
    for (const log::RegionReport& region : process->regions) {
      for (const log::SiteReport& site : region.sites) {
        SiteCells cells;
        cells.head = CsvRow(of_process.substr(0, of_process.size() - 1))
                         .add(cell_of(region.name))
                         .add(cell_of(site.name))
                         .add(cell_of(site.key))
                         .end();
        cells.head.pop_back();
        cells.simulated = process->simulated;
        for (const auto& [config, text] : site.configs)
          cells.parameters.emplace(config, cell_of(text));
        for (const log::TrialReport& trial : site.trials) write_trial(cells, trial, out);
        rows += site.trials.size();
      }
    }
  }
  return rows;
}

bool has_trials(const std::vector<const log::ProcessReport*>& processes) {
  return std::ranges::any_of(processes, [](const log::ProcessReport* process) {
    return std::ranges::any_of(process->regions, [](const log::RegionReport& region) {
      return std::ranges::any_of(region.sites,
                                 [](const log::SiteReport& site) { return !site.trials.empty(); });
    });
  });
}

}  // namespace contextune::cli
