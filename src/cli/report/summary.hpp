#pragma once

#include <string>
#include <vector>

#include "cli/report/region_mode.hpp"
#include "log/run_report.hpp"

namespace contextune::cli {

/// How many configs of a site are shown, and how many fallbacks of one reason: what befalls many
/// sites is clear from a few.
enum class Detail { Few, All };

/// Tells people what a process won and what it could not do: each site with its configs by time.
/// @param width characters of a line
[[nodiscard]] std::string process_summary(const log::ProcessReport& process, std::size_t width,
                                          Detail detail);

/// Its parts: the GPU and what times launches, one line; empty if the log does not say.
[[nodiscard]] std::string device_line(const log::ProcessReport& process);
/// The gain of a region, how it came about and its cost, without its sites.
[[nodiscard]] std::string region_lines(const log::ProcessReport& process, const RegionModes& modes,
                                       const log::RegionReport& region);
/// The sites of a region, each with its configs by time; empty if there is none.
[[nodiscard]] std::string sites_text(const log::RegionReport& region, std::size_t width,
                                     Detail detail);
/// Work that was not tuned, or not as asked; empty if there is none.
[[nodiscard]] std::string troubles(const log::ProcessReport& process, Detail detail);

/// The kernels of a process's regions by the time that they took, for --discover; empty if there
/// are none.
[[nodiscard]] std::string kernel_list(const log::ProcessReport& process, std::size_t width);

/// The region's name, marked as simulated where it is.
[[nodiscard]] std::string region_title(const log::ProcessReport& process,
                                       const log::RegionReport& region);

/// The regions that were asked for as `nvtx:NAME` and of which the log has no entry.
[[nodiscard]] std::vector<std::string> regions_never_entered(const log::ProcessReport& process);

/// Labels for the sites of a region, each at most `width` wide. A label is the site's name. Where
/// several have the same name, the parts of their keys that tell them apart follow, as in
/// "saxpy n=1048576".
[[nodiscard]] std::vector<std::string> site_labels(const log::RegionReport& region,
                                                   std::size_t width);

/// "block=256 per_sm=4" of a config; of the default without parameters "as launched", or what NCCL
/// chose.
[[nodiscard]] std::string config_text(const log::SiteReport& site, std::uint32_t config);

}  // namespace contextune::cli
