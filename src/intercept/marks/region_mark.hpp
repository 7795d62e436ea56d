#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "intercept/host/name_pattern.hpp"

namespace contextune::intercept {

/// The mark of a region in a program that knows nothing of contextune; one value of the option
/// `region`:
///
///   nvtx:NAME          an NVTX range of that name in any domain.
///   nvtx:DOMAIN@NAME   ... in that domain only; `nvtx:@NAME` is the default domain. A name that
///                      holds an @ itself needs the domain (or the empty one) in front of it.
///   profiler           cudaProfilerStart to cudaProfilerStop.
///   kernel:REGEX       from each launch of a kernel whose demangled name REGEX finds to the next.
///   graph              each launch of a CUDA graph; a region for each graph.
///   process            the whole process: no passes, each site counts its own launches.
///   auto               the stretch that the program repeats, which is looked for.
struct RegionMark {
  enum class Kind { Nvtx, Profiler, Kernel, Graph, Process, Auto };
  Kind kind = Kind::Process;
  std::string text;        ///< as given; names the region where the mark has no name of its own
  std::string name;        ///< of the region, in the log
  bool any_domain = true;  ///< Nvtx
  std::string domain;      ///< Nvtx
  std::optional<NamePattern> kernel;  ///< Kernel

  [[nodiscard]] bool opens_on(std::string_view range_domain, std::string_view range_name) const {
    return kind == Kind::Nvtx && name == range_name && (any_domain || domain == range_domain);
  }
};

/// Reads the option `region`: marks separated by ';'. Marks that cannot be used are left out, and a
/// sentence on each goes to `faults`.
[[nodiscard]] std::vector<RegionMark> parse_region_marks(std::string_view text,
                                                         std::vector<std::string>& faults);

/// The words that marks begin with; behind those that end in ':' a name or an expression follows.
[[nodiscard]] std::span<const std::string_view> region_mark_words();

}  // namespace contextune::intercept
