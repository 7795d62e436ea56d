#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/words/text.hpp"
#include "log/logfmt.hpp"
#include "log/run_report.hpp"

namespace contextune::cli {

/// The times of one config of a site. A plain value; times are seconds, NaN where there is none.
struct ConfigTimes {
  std::uint32_t config = 0;
  double median = log::not_known;
  double spread = log::not_known;  ///< from the fastest to the slowest sample, share of the median
  std::string status;  ///< why it has none, or ended early: "failed", "wrong_result", "untried"
};

/// All configs that the log names, the fastest first and unmeasured ones last. For a site without
/// trials, as where the winner was stored, times are those of its winner line.
[[nodiscard]] std::vector<ConfigTimes> configs_by_time(const log::SiteReport& site);

/// The parameters in "block=256 per_sm=4".
[[nodiscard]] std::vector<log::ParsedField> parameters_of(std::string_view text);

/// The values in which a site's configs differ, without those that all of them have.
class DifferingValues {
 public:
  explicit DifferingValues(const log::SiteReport& site);

  /// "block=256 per_sm=4"; of a default without values "as launched", or what NCCL chose.
  [[nodiscard]] std::string of(std::uint32_t config) const;
  /// The values that all have: "variant=project"; empty: none.
  [[nodiscard]] const std::string& common() const { return common_; }

 private:
  const log::SiteReport& site_;
  std::string common_;
};

/// The table of the configs of a region's sites, one row a config.
class ConfigTable {
 public:
  /// @param width characters of a line
  /// @param most_rows of a site; its winner, its default and the fastest are shown
  ConfigTable(std::size_t width, std::size_t most_rows);

  /// @param left_out what became of the region without the site's winner; null: nobody looked
  void add(const log::SiteReport& site, const std::string& label,
           const log::LeftOutReport* left_out);
  /// Lines behind `indent`; empty if there is no row.
  [[nodiscard]] std::string to_string(std::string_view indent) const;

 private:
  std::size_t width_;
  std::size_t most_rows_;
  bool empty_ = true;
  TextTable table_;
};

}  // namespace contextune::cli
