#pragma once

#include <string>
#include <vector>

#include "log/run_report.hpp"

namespace contextune::cli {

/// The iteration table of a region, rebuilt: which config every site ran in every pass.
struct IterationTable {
  struct Row {
    std::string pass;  ///< its number, or "final"
    std::vector<std::string>
        cells;  ///< one a site: "config-2 (iter-0)", "config-2 (warm-up)", "**winner**"
  };
  std::vector<std::string> sites;
  std::vector<Row> rows;
};

/// Passes in which no site was tried (refining, confirming) have no row.
[[nodiscard]] IterationTable iteration_table(const log::RegionReport& region);

/// As Markdown, with as many sites beside one another as fit in `width`.
[[nodiscard]] std::string to_markdown(const IterationTable& table, std::size_t width);

}  // namespace contextune::cli
