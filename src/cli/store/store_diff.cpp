#include "cli/store/store_diff.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/store/store_text.hpp"
#include "cli/words/text.hpp"
#include "log/logfmt.hpp"
#include "store/json_text.hpp"
#include "store/merge.hpp"

namespace contextune::cli {
namespace {

using Json = nlohmann::ordered_json;
using store::Entry;
using store::EntrySite;

// Sites of one entry are all there, or none is.
constexpr const char* any_winner = "stored";

std::string winner_of(const EntrySite& site) {
  return site.site.winner.to_string();
}

const EntrySite* find_site(const Entry& entry, const StoredSite& site) {
  const auto found = std::ranges::find_if(entry.sites, [&](const EntrySite& known) {
    return known.site.name == site.name && known.site.key == site.key;
  });
  return found == entry.sites.end() ? nullptr : &*found;
}

std::map<std::string, const store::ListedFile*> by_place(const store::Listing& listing) {
  std::map<std::string, const store::ListedFile*> files;
  for (const store::ListedFile& file : listing.files)
    if (file.content.state == store::FileState::Good) files.emplace(file.place(), &file);
  return files;
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(store::to_json_text(text));
}

}  // namespace

void compare_entries(const Entry& a, const Entry& b, const std::string& title,
                     StoreComparison& comparison) {
  for (const EntrySite& site : a.sites) {
    const EntrySite* const other = find_site(b, site.site);
    if (other != nullptr &&
        store::canonical_text(site.site.winner) == store::canonical_text(other->site.winner)) {
      ++comparison.same;
      continue;
    }
    comparison.differences.push_back({title, site.site.name, site.site.key.to_string(),
                                      winner_of(site), other == nullptr ? "" : winner_of(*other)});
  }
  for (const EntrySite& site : b.sites) {
    if (find_site(a, site.site) == nullptr)
      comparison.differences.push_back(
          {title, site.site.name, site.site.key.to_string(), "", winner_of(site)});
  }
}

StoreComparison compare_stores(const store::Listing& a, const store::Listing& b) {
  StoreComparison comparison;
  const auto in_a = by_place(a);
  const auto in_b = by_place(b);
  for (const auto& [place, file] : in_a) {
    const auto other = in_b.find(place);
    if (other == in_b.end()) {
      comparison.differences.push_back({stored_title(*file), "", "", any_winner, ""});
    } else {
      compare_entries(file->content.entry, other->second->content.entry, stored_title(*file),
                      comparison);
    }
  }
  for (const auto& [place, file] : in_b) {
    if (!in_a.contains(place))
      comparison.differences.push_back({stored_title(*file), "", "", "", any_winner});
  }
  return comparison;
}

std::string comparison_text(const StoreComparison& comparison) {
  std::string text;
  std::string title;
  for (const StoreDifference& difference : comparison.differences) {
    const bool whole = difference.site.empty();
    const bool in_both = !difference.winner_a.empty() && !difference.winner_b.empty();
    const std::string only = difference.winner_b.empty() ? "only in A" : "only in B";
    if (whole) {
      text += only + ": " + difference.entry + "\n";
      continue;
    }
    if (difference.entry != title) text += difference.entry + "\n";
    title = difference.entry;
    const std::string name = log::printable(difference.site) + (difference.key.empty() ? "" : " ") +
                             log::printable(difference.key);
    text += "  " +
            (in_both ? "A: " + log::printable(difference.winner_a) +
                           "  B: " + log::printable(difference.winner_b)
                     : only + ": " + log::printable(difference.winner_a + difference.winner_b)) +
            "  (" + name + ")\n";
  }
  return text + count_text(comparison.same, "site has", "sites have") + " the same winner, " +
         count_text(comparison.differences.size(), "difference", "differences") + "\n";
}

std::string comparison_json(const StoreComparison& comparison) {
  Json json = {{"schema", 1}, {"same", comparison.same}, {"differences", Json::array()}};
  for (const StoreDifference& difference : comparison.differences) {
    json["differences"].push_back({{"entry", text_or_null(difference.entry)},
                                   {"site", text_or_null(difference.site)},
                                   {"key", store::to_json_text(difference.key)},
                                   {"a", text_or_null(difference.winner_a)},
                                   {"b", text_or_null(difference.winner_b)}});
  }
  return json.dump(2, ' ', true) + "\n";
}

}  // namespace contextune::cli
