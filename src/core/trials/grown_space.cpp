#include "core/trials/grown_space.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

namespace contextune {
namespace {

using Texts = std::set<std::string>;

/// The size of the space that the key says, and the rest of the key; empty: it says none.
std::pair<std::string, Key> split(const Key& key) {
  std::pair<std::string, Key> found;
  for (const auto& [name, part] : key.entries()) {
    if (name != kept_part || !std::holds_alternative<std::string>(part)) {
      found.second.add(name, part);
      continue;
    }
    const auto& text = std::get<std::string>(part);
    const std::size_t of = text.find("of");
    const std::size_t end = text.find('-');
    if (of != text.npos && end != text.npos && of < end)
      found.first = text.substr(of + 2, end - of - 2);
  }
  return found;
}

Texts texts_of(const StoredSite& site) {
  Texts texts;
  for (const StoredTrial& trial : site.trials) texts.insert(trial.config.to_string());
  return texts;
}

}  // namespace

const StoredSite* find_before_growth(std::span<const StoredSite> stored, const std::string& name,
                                     const Key& key, std::span<const Config> configs) {
  const auto [size, rest] = split(key);
  if (size.empty()) return nullptr;
  // By size of the space: all configs that are known to have been in it.
  std::map<std::string, Texts> spaces;
  std::map<const StoredSite*, std::string> candidates;
  for (const StoredSite& site : stored) {
    if (site.name != name || site.reason == WinnerReason::NoSamples) continue;
    auto [other_size, other_rest] = split(site.key);
    if (other_size.empty() || other_size == size || other_rest != rest) continue;
    spaces[other_size].merge(texts_of(site));
    candidates.emplace(&site, std::move(other_size));
  }
  Texts here;
  for (const Config& config : configs) here.insert(config.to_string());
  const StoredSite* latest = nullptr;
  for (const auto& [site, other_size] : candidates) {
    const Texts& space = spaces[other_size];
    Texts kept;
    std::ranges::set_intersection(space, here, std::inserter(kept, kept.end()));
    if (kept != texts_of(*site)) continue;
    if (latest == nullptr || site->tuned_at > latest->tuned_at) latest = site;
  }
  return latest;
}

}  // namespace contextune
