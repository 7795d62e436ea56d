#include "cli/report/rank_differences.hpp"

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "cli/report/rank_agreements.hpp"
#include "cli/report/summary.hpp"

namespace contextune::cli {
namespace {

using log::FallbackReport;
using log::ProcessReport;
using log::RegionReport;
using log::SiteReport;
using log::SyncReport;

using Ranks = std::map<int, const ProcessReport*>;
using RanksByValue = std::map<std::string, std::vector<int>>;
using Sentences = std::vector<std::string>;

// Differences that recur in every question are told in full for the first questions only.
constexpr std::size_t most_questions_told = 3;

// "rank 2", "ranks 0, 1", "ranks 0 to 6, 9".
std::string ranks_text(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (last < i + 2) last = i;
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
    if (last > i) text += " to " + std::to_string(ranks[last]);
    i = last + 1;
  }
  return text;
}

// "9.0 on ranks 0, 1; 8.0 on rank 2", what most ranks have first.
std::string spread_text(const RanksByValue& values) {
  std::vector<std::pair<std::string, std::vector<int>>> sorted(values.begin(), values.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  std::string text;
  for (const auto& [value, ranks] : sorted)
    text += (text.empty() ? "" : "; ") + value + " on " + ranks_text(ranks);
  return text;
}

void note(Sentences& sentences, const std::string& what, const RanksByValue& values) {
  if (values.size() > 1) sentences.push_back(what + ": " + spread_text(values));
}

template <class Value>
std::vector<int> ranks_without(const Ranks& ranks, const std::map<int, Value>& those) {
  std::vector<int> without;
  for (const auto& [rank, process] : ranks) {
    if (!those.contains(rank)) without.push_back(rank);
  }
  return without;
}

// Something that all of `ranks` should have or none.
template <class Value>
void note_absence(Sentences& sentences, const std::string& what, const Ranks& ranks,
                  const std::map<int, Value>& those) {
  const std::vector<int> without = ranks_without(ranks, those);
  if (without.empty() || those.empty()) return;
  std::vector<int> with;
  with.reserve(those.size());
  for (const auto& [rank, value] : those) with.push_back(rank);
  sentences.push_back(what + ": on " + ranks_text(with) + ", not on " + ranks_text(without));
}

void compare_processes(Sentences& sentences, const Ranks& ranks) {
  using Text = std::string ProcessReport::*;
  const std::pair<const char*, Text> fields[] = {
      {"version of contextune", &ProcessReport::version},
      {"program", &ProcessReport::program},
      {"GPU", &ProcessReport::gpu},
      {"compute capability", &ProcessReport::compute_capability},
      {"driver", &ProcessReport::driver},
      {"mode", &ProcessReport::mode},
      {"regions asked for", &ProcessReport::asked_regions},
      {"clock of launches", &ProcessReport::timer}};
  for (const auto& [name, field] : fields) {
    RanksByValue values;
    for (const auto& [rank, process] : ranks) {
      if (process->started)
        values[(process->*field).empty() ? "none" : process->*field].push_back(rank);
    }
    note(sentences, name, values);
  }
  if (std::string missing = missing_ranks(ranks); !missing.empty())
    sentences.push_back(std::move(missing));
  std::map<int, bool> ended;
  for (const auto& [rank, process] : ranks) {
    if (process->launches_outside) ended[rank] = true;
  }
  note_absence(sentences, "the last line of a process that ends", ranks, ended);
}

using RegionByRank = std::map<int, const RegionReport*>;

std::string title_of(const SiteReport& site, const std::string& region) {
  return site.name + (site.key.empty() ? "" : " (" + site.key + ")") + " in region " + region;
}

void compare_sites(Sentences& sentences, const std::string& region, const Ranks& ranks,
                   const RegionByRank& regions) {
  std::map<std::pair<std::string, std::string>, std::map<int, const SiteReport*>> sites;
  for (const auto& [rank, report] : regions) {
    for (const SiteReport& site : report->sites) sites[{site.name, site.key}][rank] = &site;
  }
  for (const auto& [name, by_rank] : sites) {
    const std::string title = title_of(*by_rank.begin()->second, region);
    note_absence(sentences, "site " + title, ranks, by_rank);
    RanksByValue num_configs;
    RanksByValue winners;
    RanksByValue reasons;
    for (const auto& [rank, site] : by_rank) {
      if (site->num_configs > 0) num_configs[std::to_string(site->num_configs)].push_back(rank);
      if (!site->winner) {
        winners["none"].push_back(rank);
        continue;
      }
      const std::uint32_t config = site->winner->config;
      winners["config-" + std::to_string(config) + " " + config_text(*site, config)].push_back(
          rank);
      reasons[site->winner->reason].push_back(rank);
    }
    note(sentences, "number of configs of " + title, num_configs);
    note(sentences, "winner of " + title, winners);
    note(sentences, "reason of the winner of " + title, reasons);
  }
}

// "question 3", "questions 26 to 28".
std::string questions_text(const std::vector<std::uint64_t>& questions) {
  const std::string first = std::to_string(questions.front());
  const std::string last = std::to_string(questions.back());
  if (questions.size() == 1) return "question " + first;
  if (questions.back() - questions.front() + 1 == questions.size())
    return "questions " + first + " to " + last;
  return std::to_string(questions.size()) + " questions from " + first + " to " + last;
}

// "aborted (rank 1 did not come)"
std::string verdict_of(const SyncReport& sync) {
  return sync.verdict + (sync.text.empty() ? "" : " (" + sync.text + ")");
}

void compare_group(Sentences& sentences, const std::string& region, const GroupAgreements& group) {
  std::map<std::vector<int>, std::vector<std::uint64_t>> by_absence;
  std::vector<std::uint64_t> untold;
  for (const auto& [question, by_rank] : group.questions) {
    if (auto without = ranks_without(group.members, by_rank); !without.empty())
      by_absence[std::move(without)].push_back(question);
    RanksByValue hashes;
    RanksByValue verdicts;
    std::map<std::string, std::string> texts;  // one a verdict: each rank has its own words
    for (const auto& [rank, sync] : by_rank) {
      if (sync->verdict == "committed") hashes[sync->hash].push_back(rank);
      verdicts[texts.emplace(sync->verdict, verdict_of(*sync)).first->second].push_back(rank);
    }
    if (hashes.size() < 2 && verdicts.size() < 2) continue;
    const std::string title = "question " + std::to_string(question) + " of region " + region;
    if (untold.size() < most_questions_told) {
      note(sentences, "verdict on " + title, verdicts);
      note(sentences, "hash of what was agreed on in " + title, hashes);
    }
    untold.push_back(question);
  }
  if (untold.size() > most_questions_told) {
    untold.erase(untold.begin(), untold.begin() + most_questions_told);
    sentences.push_back("the same of " + questions_text(untold) + " of region " + region);
  }
  for (const auto& [without, those] : by_absence) {
    note_absence(sentences, questions_text(those) + " of region " + region, group.members,
                 group.questions.at(those.front()));
  }
}

void compare_ends(Sentences& sentences, const std::string& region, const RegionByRank& regions) {
  RanksByValue stages;
  RanksByValue verdicts;
  for (const auto& [rank, report] : regions) {
    stages[report->stage.empty() ? "none" : report->stage].push_back(rank);
    verdicts[report->confirms.empty() ? "none" : report->confirms.back().verdict].push_back(rank);
  }
  note(sentences, "last stage of region " + region, stages);
  note(sentences, "last confirmation of region " + region, verdicts);
}

// Ranks may differ in the regions that they find by themselves and in how their launches go out.
std::set<std::string> found_regions(const Ranks& ranks) {
  std::set<std::string> found;
  for (const auto& [rank, process] : ranks) {
    for (const RegionReport& region : process->regions)
      if (region.submission || !region.found.empty()) found.insert(region.name);
  }
  return found;
}

void compare_regions(Sentences& sentences, const Ranks& ranks) {
  const std::set<std::string> found = found_regions(ranks);
  std::map<std::string, RegionByRank> regions;
  for (const auto& [rank, process] : ranks) {
    for (const RegionReport& region : process->regions) regions[region.name][rank] = &region;
  }
  auto agreements = agreements_of(ranks);
  for (const auto& [name, by_rank] : regions) {
    if (found.contains(name)) continue;
    note_absence(sentences, "region " + name, ranks, by_rank);
    Ranks those;
    for (const auto& [rank, region] : by_rank) those[rank] = ranks.at(rank);
    compare_sites(sentences, name, those, by_rank);
    for (const GroupAgreements& group : agreements[name]) compare_group(sentences, name, group);
    compare_ends(sentences, name, by_rank);
  }
}

// Each rank has a device of its own: "saxpy{code=1f device=3 n=8}" is the same site on all of them.
std::string on_any_device(const std::string& site) {
  constexpr std::string_view part = " device=";
  const std::size_t begin = site.find(part, std::min(site.find('{'), site.size()));
  if (begin == std::string::npos) return site;
  const std::size_t end = std::min(site.find_first_of(" }", begin + part.size()), site.size());
  return site.substr(0, begin) + site.substr(end);
}

void compare_fallbacks(Sentences& sentences, const Ranks& ranks) {
  using Case = std::tuple<std::string, std::string, std::string>;  // reason, region, site
  std::map<Case, std::map<int, const FallbackReport*>> cases;
  for (const auto& [rank, process] : ranks) {
    for (const FallbackReport& one : process->fallbacks)
      cases[{one.reason, one.region, on_any_device(one.site)}][rank] = &one;
  }
  const std::set<std::string> found = found_regions(ranks);
  for (const auto& [name, by_rank] : cases) {
    const auto& [reason, region, site] = name;
    if (by_rank.size() == ranks.size() || found.contains(region)) continue;
    std::string what = "fallback " + reason;
    if (!region.empty()) what += ", " + region;
    if (!site.empty()) what += ", " + site;
    note_absence(sentences, what, ranks, by_rank);
    sentences.back() += ": " + by_rank.begin()->second->text;
  }
}

}  // namespace

std::string missing_ranks(const Ranks& ranks) {
  std::uint64_t num_ranks = static_cast<std::uint64_t>(ranks.rbegin()->first) + 1;
  for (const auto& [rank, process] : ranks) num_ranks = std::max(num_ranks, process->world_size);
  std::vector<int> missing;
  for (int rank = 0; static_cast<std::uint64_t>(rank) < num_ranks && missing.size() < 16; ++rank)
    if (!ranks.contains(rank)) missing.push_back(rank);
  return missing.empty() ? std::string() : "no line of " + ranks_text(missing);
}

std::vector<std::string> differences_of(const Ranks& ranks) {
  Sentences sentences;
  compare_processes(sentences, ranks);
  compare_regions(sentences, ranks);
  compare_fallbacks(sentences, ranks);
  return sentences;
}

}  // namespace contextune::cli
