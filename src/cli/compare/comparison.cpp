#include "cli/compare/comparison.hpp"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "log/logfmt.hpp"

namespace contextune::cli {
namespace {

/// Things of both sides that belong together, and those that are left.
template <class Thing>
struct Matched {
  struct Pair {
    const Thing* a = nullptr;
    const Thing* b = nullptr;
    bool loosely = false;
  };
  std::vector<Pair> pairs;  ///< as they stand in A
  std::vector<const Thing*> only_in_a;
  std::vector<const Thing*> only_in_b;
};

/// Matches what has the same `strict` name, then, of what is left, what alone has a `loose` one on
/// either side.
template <class Thing, class Strict, class Loose>
Matched<Thing> match(const std::vector<Thing>& a, const std::vector<Thing>& b, Strict&& strict,
                     Loose&& loose) {
  std::unordered_map<std::string, std::vector<const Thing*>> in_b;
  for (const Thing& thing : b) in_b[strict(thing)].push_back(&thing);
  std::unordered_map<const Thing*, const Thing*> partners;
  std::unordered_set<const Thing*> taken;
  for (const Thing& thing : a) {
    const auto found = in_b.find(strict(thing));
    if (found == in_b.end() || found->second.empty()) continue;
    partners[&thing] = found->second.front();
    taken.insert(found->second.front());
    found->second.erase(found->second.begin());
  }
  struct Left {
    std::vector<const Thing*> a;
    std::vector<const Thing*> b;
  };
  std::unordered_map<std::string, Left> left;
  for (const Thing& thing : a)
    if (!partners.contains(&thing)) left[loose(thing)].a.push_back(&thing);
  for (const Thing& thing : b)
    if (!taken.contains(&thing)) left[loose(thing)].b.push_back(&thing);
  Matched<Thing> matched;
  for (const Thing& thing : a) {
    if (const auto partner = partners.find(&thing); partner != partners.end()) {
      matched.pairs.push_back({&thing, partner->second, false});
    } else if (const Left& like = left[loose(thing)]; like.a.size() == 1 && like.b.size() == 1) {
      matched.pairs.push_back({&thing, like.b.front(), true});
      taken.insert(like.b.front());
    } else {
      matched.only_in_a.push_back(&thing);
    }
  }
  for (const Thing& thing : b)
    if (!taken.contains(&thing)) matched.only_in_b.push_back(&thing);
  return matched;
}

std::string name_of(std::initializer_list<std::string_view> parts) {
  std::string name;
  for (const std::string_view part : parts) name.append(part).append(1, '\0');
  return name;
}

std::vector<DifferingParameter> differing_parameters(const ComparedWinner& a,
                                                     const ComparedWinner& b) {
  using Parameters = std::vector<std::pair<std::string, std::string>>;
  const auto value_in = [](const Parameters& parameters, const std::string& name) {
    const auto found = std::ranges::find_if(
        parameters, [&](const auto& parameter) { return parameter.first == name; });
    return found == parameters.end() ? std::string() : found->second;
  };
  std::vector<DifferingParameter> differing;
  for (const auto& [name, value] : a.parameters) {
    const std::string other = value_in(b.parameters, name);
    if (other != value) differing.push_back({name, value, other});
  }
  for (const auto& [name, value] : b.parameters)
    if (value_in(a.parameters, name).empty() && !value.empty())
      differing.push_back({name, "", value});
  return differing;
}

SitePair compared_pair(const ComparedSite& a, const ComparedSite& b, bool loosely, double margin) {
  SitePair pair;
  pair.a = &a;
  pair.b = &b;
  pair.loosely = loosely;
  pair.settled = change_of(a.settled, b.settled, margin);
  pair.by_default = change_of(a.by_default, b.by_default, margin);
  if (!a.winner || !b.winner) return pair;
  pair.differing = differing_parameters(*a.winner, *b.winner);
  pair.winners_differ = !pair.differing.empty() || a.winner->is_default != b.winner->is_default;
  return pair;
}

RegionPair compared_pair(const ComparedRegion& a, const ComparedRegion& b, double margin) {
  RegionPair pair;
  pair.a = &a;
  pair.b = &b;
  pair.other_hardware = a.hardware != b.hardware;
  auto sites = match(
      a.sites, b.sites,
      [](const ComparedSite& site) {
        return name_of({site.name, site.key});
      },
      [](const ComparedSite& site) {
        return name_of({site.name, site.loose_key});
      });
  for (const auto& [of_a, of_b, loosely] : sites.pairs)
    pair.sites.push_back(compared_pair(*of_a, *of_b, loosely, margin));
  pair.only_in_a = std::move(sites.only_in_a);
  pair.only_in_b = std::move(sites.only_in_b);
  const auto site_of = [](const ComparedGain& gain) { return gain.site; };
  for (const auto& [of_a, of_b, loosely] : match(a.gains, b.gains, site_of, site_of).pairs) {
    pair.gains.push_back({of_a, of_b, change_of(of_a->figures, of_b->figures, margin)});
  }
  return pair;
}

// Facts of which either side says something else. One that a side does not know is not compared.
std::vector<DifferingFact> differing_facts(const ComparedSide& a, const ComparedSide& b) {
  std::vector<DifferingFact> differing;
  for (const auto& [name, value] : a.facts) {
    const std::string other = b.fact(name);
    if (!other.empty() && other != value) differing.push_back({name, value, other});
  }
  if (a.num_ranks != b.num_ranks)
    differing.push_back({"ranks", std::to_string(a.num_ranks), std::to_string(b.num_ranks)});
  return differing;
}

}  // namespace

std::string ComparedSide::fact(const std::string& name) const {
  const auto found =
      std::ranges::find_if(facts, [&](const auto& known) { return known.first == name; });
  return found == facts.end() ? std::string() : found->second;
}

void note_defaults(ComparedRegion& region) {
  const bool are_all = std::ranges::all_of(region.sites, [](const ComparedSite& site) {
    return site.winner && site.winner->is_default;
  });
  for (ComparedGain& gain : region.gains)
    if (are_all && gain.site.empty() && gain.verdict == "skipped") gain.figures.is_none = true;
}

std::vector<std::pair<std::string, std::string>> values_in(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> values;
  log::ParsedField field;
  std::string ignored;
  while (!text.empty() && log::take_field(text, field, ignored))
    values.emplace_back(field.name, field.value);
  return values;
}

SideComparison compare_sides(const ComparedSide& a, const ComparedSide& b, double margin) {
  SideComparison comparison;
  comparison.margin = margin;
  comparison.facts = differing_facts(a, b);
  comparison.is_same_run = !a.runs.empty() && a.runs == b.runs && a.time == b.time;
  comparison.has_other_gpu = std::ranges::any_of(
      comparison.facts, [](const DifferingFact& fact) { return fact.name == "GPU"; });
  comparison.is_simulated_and_real = a.simulated != b.simulated || a.is_real != b.is_real;
  auto regions = match(
      a.regions, b.regions,
      [](const ComparedRegion& region) {
        return name_of({region.kind, region.name, region.hardware});
      },
      [](const ComparedRegion& region) {
        return name_of({region.kind, region.name});
      });
  for (const auto& [of_a, of_b, loosely] : regions.pairs) {
    const RegionPair& pair = comparison.regions.emplace_back(compared_pair(*of_a, *of_b, margin));
    comparison.has_other_gpu |= of_a->gpu != of_b->gpu;
    for (const SitePair& site : pair.sites) {
      comparison.settled.add(site.settled.word);
      comparison.defaults.add(site.by_default.word);
    }
    for (const GainPair& gain : pair.gains) comparison.gains.add(gain.change.word);
  }
  comparison.only_in_a = std::move(regions.only_in_a);
  comparison.only_in_b = std::move(regions.only_in_b);
  return comparison;
}

}  // namespace contextune::cli
