#include "store/entry_size.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "store/entry_json.hpp"

namespace contextune::store {
namespace {

// The size of a site alone, which is printed as it is among others.
std::size_t bytes_of(const EntrySite& site) {
  Entry alone;
  alone.sites.push_back(site);
  return to_text(alone).size();
}

// False: there are none.
bool drop_measurements(StoredSite& site) {
  std::vector<StoredTrial> kept;
  for (const StoredTrial& trial : site.trials) {
    const bool is_another = trial.status == TrialStatus::Measured && trial.config != site.winner;
    if (kept.empty() || !is_another) kept.push_back(trial);  // the first is the default
  }
  if (kept.size() == site.trials.size()) return false;
  site.trials = std::move(kept);
  return true;
}

std::string count_text(std::size_t number, const char* one) {
  return std::to_string(number) + " " + one + (number == 1 ? "" : "s");
}

}  // namespace

std::string shrink(Entry& entry, std::size_t most_bytes) {
  std::size_t bytes = to_text(entry).size();
  if (bytes <= most_bytes) return {};
  const std::size_t wanted = most_bytes - most_bytes / 8;
  std::vector<std::size_t> oldest(entry.sites.size());
  std::iota(oldest.begin(), oldest.end(), 0);
  std::ranges::stable_sort(oldest, {}, [&](std::size_t i) { return entry.sites[i].site.tuned_at; });
  std::vector<std::size_t> sizes(entry.sites.size());
  std::size_t thinned = 0;
  for (const std::size_t i : oldest) {
    if (bytes <= wanted) break;
    EntrySite& site = entry.sites[i];
    const std::size_t before = bytes_of(site);
    if (!drop_measurements(site.site)) continue;
    bytes -= std::min(bytes, before - bytes_of(site));
    ++thinned;
  }
  std::vector<bool> is_dropped(entry.sites.size(), false);
  std::size_t dropped = 0;
  for (const std::size_t i : oldest) {
    if (bytes <= wanted || dropped + 1 >= entry.sites.size()) break;
    bytes -= std::min(bytes, bytes_of(entry.sites[i]));
    is_dropped[i] = true;
    ++dropped;
  }
  std::vector<EntrySite> kept;
  for (std::size_t i = 0; i < is_dropped.size(); ++i)
    if (!is_dropped[i]) kept.push_back(std::move(entry.sites[i]));
  entry.sites = std::move(kept);
  std::string said;
  if (thinned > 0)
    said = "the measurements of other configs than winners, at the " + count_text(thinned, "site") +
           " tuned longest ago";
  if (dropped > 0)
    said += (said.empty() ? "" : "; and ") + count_text(dropped, "site") + " altogether";
  return said;
}

}  // namespace contextune::store
