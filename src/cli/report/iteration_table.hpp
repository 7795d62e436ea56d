#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "log/run_report.hpp"

namespace contextune::cli {

/// The iteration table of a region, rebuilt: which config every site ran in every pass, as the log
/// says, and nothing else.
struct IterationTable {
  struct Row {
    std::string pass;  ///< its number, or "final"; "3 (alone)" where other ranks made none with it
    /// A cell for each site. A trial: "config-2 (iter-0)", "config-2 (warm-up)", or, where the
    /// default ran in its place, "config-0 (config-2 failed)". Otherwise "**winner**" or "config-0"
    /// where nothing was tried, "mixed", "-" where the site was not launched, "?" where the log
    /// does not say.
    std::vector<std::string> cells;
  };
  std::vector<std::string> sites;
  std::vector<Row> rows;
  bool is_too_large = false;  ///< then it has no rows: nobody could read it
};

/// A table with more cells is not made.
inline constexpr std::uint64_t most_cells = 1'000'000;

/// Passes in which no site was tried (refining, confirming) have no row.
[[nodiscard]] IterationTable iteration_table(const log::RegionReport& region);

/// As Markdown, with as many sites beside one another as fit in `width`.
[[nodiscard]] std::string to_markdown(const IterationTable& table, std::size_t width);

}  // namespace contextune::cli
