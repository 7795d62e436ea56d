#include "cli/store/store_text.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/words/text.hpp"
#include "core/submission/submission_stored.hpp"
#include "core/trials/stored_winner.hpp"
#include "log/logfmt.hpp"
#include "store/entry_json.hpp"
#include "store/json_text.hpp"
#include "store/refuted_winners.hpp"

namespace contextune::cli {
namespace {

using Json = nlohmann::ordered_json;
using store::Entry;
using store::EntrySite;
using store::ListedFile;
using store::Listing;

constexpr std::size_t most_name_columns = 48;

std::string shown(const std::string& name) {
  return log::printable(name);
}

std::string facts_text(const Facts& facts) {
  std::string text;
  for (const auto& [name, value] : facts)
    text += (text.empty() ? "" : ", ") + shown(name) + "=" + shown(value);
  return text.empty() ? "not known" : text;
}

std::string gpu_of(const Entry& entry) {
  for (const auto& [name, value] : entry.hardware)
    if (name == "gpu") return value;
  return entry.hardware.empty() ? "unknown hardware" : entry.hardware.front().second;
}

std::string last_time(const Entry& entry) {
  std::string last;
  for (const EntrySite& site : entry.sites) last = std::max(last, site.site.tuned_at);
  if (entry.confirm) last = std::max(last, entry.confirm->tuned_at);
  return last;
}

std::size_t num_tuned(const Entry& entry) {
  return static_cast<std::size_t>(std::ranges::count_if(entry.sites, [](const EntrySite& site) {
    return !site.site.trials.empty() && !keeps_default(site.site);
  }));
}

// The share of the default's time that the winner saves.
double gain_of(double seconds, double default_seconds) {
  return default_seconds > 0 ? 1 - seconds / default_seconds : NAN;
}

/// The gain of the region with the winners that it has; NaN: nothing was compared, or it was not
/// shown to be faster with any.
double won(const store::EntryConfirm& confirm) {
  const StoredConfirm& figures = confirm.figures;
  const bool kept =
      figures.verdict == ConfirmVerdict::Kept || figures.verdict == ConfirmVerdict::Reduced;
  return kept && figures.pairs > 0 ? figures.gain : NAN;
}

/// The gain of a region as a whole; for a function or choice, whose sites are its keys, the most at
/// one of them.
std::string gain_text(const Entry& entry) {
  if (entry.confirm) return percent_text(won(*entry.confirm));
  double most = NAN;
  if (entry.kind != StoredKind::Region) {
    for (const EntrySite& known : entry.sites)
      most = std::fmax(most, gain_of(known.site.seconds, known.site.default_seconds));
  }
  return std::isnan(most) ? "-" : "up to " + percent_text(most);
}

/// The word for a site of the entry.
const char* site_word(const Entry& entry) {
  return entry.kind == StoredKind::Region ? "site" : "key";
}

std::vector<std::string> winner_cells(const Config& winner, const StoredSite& site,
                                      WinnerReason reason, double seconds, double default_seconds,
                                      double gain, const std::string& tuned_at) {
  const bool is_default = !site.trials.empty() && winner == site.trials.front().config;
  return {shown(winner.to_string()),  std::string(to_string(reason)),        time_text(seconds),
          time_text(default_seconds), is_default ? "-" : percent_text(gain), tuned_at};
}

void add_row(TextTable& table, std::string first, std::string second,
             std::vector<std::string> cells) {
  cells.insert(cells.begin(), {std::move(first), std::move(second)});
  table.add(std::move(cells));
}

std::string confirm_text(const store::EntryConfirm& confirm) {
  const StoredConfirm& figures = confirm.figures;
  if (figures.pairs == 0) {
    return "  region    - (not compared, " + std::string(to_string(figures.verdict)) + ", " +
           confirm.tuned_at + ")\n";
  }
  return "  region    " + time_text(figures.before_seconds) + " with all defaults, " +
         time_text(figures.after_seconds) + " with the winners: " + percent_text(figures.gain) +
         " (at least " + percent_text(figures.bound) + " at 95 %, " +
         count_text(static_cast<unsigned long long>(figures.pairs), "pair", "pairs") + ", " +
         std::string(to_string(figures.verdict)) + ", " + confirm.tuned_at + ")\n";
}

std::string_view word_of(store::FileState state) {
  switch (state) {
    case store::FileState::Missing:
      return "missing";
    case store::FileState::Good:
      return "good";
    case store::FileState::Damaged:
      return "damaged";
    case store::FileState::Newer:
      return "newer";
    case store::FileState::Refused:
      return "refused";
  }
  return "";
}

Json facts_json(const Facts& facts) {
  Json json = Json::object();
  for (const auto& [name, value] : facts)
    json[store::to_json_text(name)] = store::to_json_text(value);
  return json;
}

// A line each; none: nothing is wrong with it.
std::vector<std::string> problems_in(const ListedFile& file) {
  if (file.content.state != store::FileState::Good) return {file.content.problem};
  std::vector<std::string> problems = store::refuted_winners(file.content.entry);
  for (std::string& problem : problems) problem.insert(0, file.path + ": ");
  return problems;
}

}  // namespace

std::string store_list_text(const Listing& listing) {
  TextTable table({3, 4, 6});
  table.add({"name", "kind", "hardware", "sites", "tuned", "last tuned", "won", "file"});
  for (const ListedFile& file : listing.files) {
    const Entry& entry = file.content.entry;
    if (file.content.state != store::FileState::Good) continue;
    table.add({shortened(shown(entry.name), most_name_columns), std::string(to_string(entry.kind)),
               shown(gpu_of(entry)), std::to_string(entry.sites.size()),
               std::to_string(num_tuned(entry)), last_time(entry), gain_text(entry), file.place()});
  }
  return table.to_string("");
}

std::string store_list_json(const std::string& folder, const Listing& listing) {
  Json json = {{"schema", 1},
               {"folder", store::to_json_text(folder)},
               {"entries", Json::array()},
               {"problems", Json::array()}};
  for (const ListedFile& file : listing.files) {
    const Entry& entry = file.content.entry;
    if (file.content.state != store::FileState::Good) continue;
    json["entries"].push_back({{"file", file.place()},
                               {"kind", to_string(entry.kind)},
                               {"name", store::to_json_text(entry.name)},
                               {"hardware", facts_json(entry.hardware)},
                               {"num_sites", entry.sites.size()},
                               {"num_tuned", num_tuned(entry)},
                               {"tuned_at", last_time(entry)},
                               {"gain", entry.confirm ? won(*entry.confirm) : NAN}});
  }
  for (const std::string& problem : problems_of(listing))
    json["problems"].push_back(store::to_json_text(problem));
  return json.dump(2, ' ', true) + "\n";
}

std::string stored_title(const ListedFile& file) {
  const Entry& entry = file.content.entry;
  return file.place() + " (" + std::string(to_string(entry.kind)) + " '" + shown(entry.name) +
         "' on " + shown(gpu_of(entry)) + ", " +
         count_text(entry.sites.size(), site_word(entry), std::string(site_word(entry)) + "s") +
         ")";
}

std::string entry_text(const ListedFile& file, bool history) {
  const Entry& entry = file.content.entry;
  std::string text = stored_title(file) + "\n  hardware  " + facts_text(entry.hardware) + "\n";
  for (const auto& [id, facts] : entry.software)
    text += "  software  " + facts_text(facts) +
            (entry.software.size() > 1 ? " [" + id + "]" : "") + "\n";
  if (entry.confirm) text += confirm_text(*entry.confirm);
  TextTable table({4, 5, 6});
  table.add({std::string(entry.kind == StoredKind::Region ? "site" : to_string(entry.kind)), "key",
             "winner", "why", "time", "default", "gain", "tuned at"});
  for (const EntrySite& known : entry.sites) {
    const StoredSite& site = known.site;
    // How launches go out was compared in pairs, of which no time of its own is kept.
    const auto submission = submission_of(site);
    const double gain =
        submission ? submission->verdict.gain : gain_of(site.seconds, site.default_seconds);
    auto cells = winner_cells(site.winner, site, site.reason, site.seconds, site.default_seconds,
                              gain, site.tuned_at);
    if (entry.software.size() > 1) cells.push_back("[" + known.software + "]");
    add_row(table, shortened(shown(site.name), most_name_columns),
            shortened(shown(site.key.to_string()), most_name_columns), std::move(cells));
    if (!history) continue;
    for (const store::ReplacedWinner& replaced : known.replaced) {
      auto old = winner_cells(
          replaced.winner, site, replaced.reason, replaced.seconds, replaced.default_seconds,
          gain_of(replaced.seconds, replaced.default_seconds), replaced.tuned_at);
      if (entry.software.size() > 1) old.push_back("[" + replaced.software + "]");
      add_row(table, "  before", "", std::move(old));
    }
  }
  return text + "\n" + table.to_string("  ");
}

std::string entries_json(const std::vector<const ListedFile*>& files) {
  Json json = {{"schema", 1}, {"entries", Json::array()}};
  for (const ListedFile* file : files) {
    json["entries"].push_back(
        {{"file", file->place()}, {"entry", Json::parse(store::to_text(file->content.entry))}});
  }
  return json.dump(2, ' ', true) + "\n";
}

std::vector<std::string> problems_of(const Listing& listing) {
  std::vector<std::string> problems = listing.problems;
  for (const ListedFile& file : listing.files)
    for (std::string& problem : problems_in(file)) problems.push_back(std::move(problem));
  return problems;
}

std::string check_json(const std::string& folder, const Listing& listing) {
  Json json = {{"schema", 1},
               {"folder", store::to_json_text(folder)},
               {"files", Json::array()},
               {"folder_problems", Json::array()},
               {"set_aside", Json::array()}};
  for (const ListedFile& file : listing.files) {
    std::string problem;
    for (const std::string& one : problems_in(file)) problem += (problem.empty() ? "" : "; ") + one;
    json["files"].push_back(
        {{"file", file.place()},
         {"state", word_of(file.content.state)},
         {"problem", problem.empty() ? Json(nullptr) : Json(store::to_json_text(problem))}});
  }
  for (const std::string& problem : listing.problems)
    json["folder_problems"].push_back(store::to_json_text(problem));
  for (const std::string& path : listing.set_aside)
    json["set_aside"].push_back(store::to_json_text(path));
  return json.dump(2, ' ', true) + "\n";
}

}  // namespace contextune::cli
