#include "core/submission/found_region.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/submission/period_finder.hpp"

namespace contextune {
namespace {

struct Kind {
  std::uint32_t count;
  const char* one;
  const char* more;
};

std::string text_of_kind(const Kind& kind) {
  return text_with_thousands(kind.count) + " " + (kind.count == 1 ? kind.one : kind.more);
}

// "every 4 launches, 1 copy and 1 wait from dev_lapl_iter"
std::string text_of_period(const FoundRegion& region) {
  std::vector<Kind> kinds;
  for (const Kind& kind :
       {Kind{region.launches, "launch", "launches"},
        Kind{region.graph_launches, "graph launch", "graph launches"},
        Kind{region.copies, "copy", "copies"}, Kind{region.waits, "wait", "waits"}})
    if (kind.count > 0) kinds.push_back(kind);
  const std::string name = region.first.empty() ? "" : "`" + region.first + "`";
  if (kinds.size() == 1 && kinds.front().count == 1)
    return std::string("every ") + kinds.front().one + (name.empty() ? "" : " of " + name);
  std::string text = "every ";
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (i > 0) text += i + 1 < kinds.size() ? ", " : " and ";
    text += text_of_kind(kinds[i]);
  }
  return text + (region.first.empty() ? "" : " from " + region.first);
}

// Shares that are small or nearly all are not rounded to none or all.
std::string text_of_share(double share) {
  const double percent = std::clamp(std::isfinite(share) ? share : 0.0, 0.0, 1.0) * 100;
  if (percent > 0 && percent < 1) return "less than 1 %";
  if (percent < 100 && percent > 99) return "99 %";
  return std::to_string(std::lround(percent)) + " %";
}

}  // namespace

FoundRegion region_of_steps(std::span<const std::uint64_t> tokens) {
  FoundRegion region;
  const auto count = [&](StepKind kind) {
    return static_cast<std::uint32_t>(
        std::count_if(tokens.begin(), tokens.end(),
                      [&](std::uint64_t token) { return kind_of_step(token) == kind; }));
  };
  region.launches = count(StepKind::Launch);
  region.graph_launches = count(StepKind::GraphLaunch);
  region.copies = count(StepKind::Copy);
  region.waits = count(StepKind::Wait);
  return region;
}

std::string text_with_thousands(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

std::string text_of(const FoundRegion& region) {
  std::string text = text_of_period(region);
  if (region.joined > 1) text += ", " + text_with_thousands(region.joined) + " times an entry";
  text +=
      "; " + text_with_thousands(region.entries) + (region.entries == 1 ? " entry" : " entries");
  if (region.threads > 1) text += " on " + text_with_thousands(region.threads) + " threads";
  return text + "; " + text_of_share(region.share) + " of the elapsed time";
}

std::string text_of(std::span<const FoundRegion> regions) {
  if (regions.empty()) return "nothing repeats: the process is the region";
  std::string text;
  for (const FoundRegion& region : regions)
    text += (text.empty() ? "" : ". Also ") + text_of(region);
  return text;
}

}  // namespace contextune
