#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/compare/comparison_text.hpp"

namespace contextune::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson finite_or_null(double number) {
  return std::isfinite(number) ? OrderedJson(number) : OrderedJson();
}

OrderedJson text_or_nothing(const std::string& text) {
  return text.empty() ? OrderedJson() : OrderedJson(text);
}

OrderedJson change_json(const Change& change) {
  return {{"word", to_string(change.word)},
          {"ratio", finite_or_null(change.ratio)},
          {"low", finite_or_null(change.low)},
          {"high", finite_or_null(change.high)},
          {"why", text_or_nothing(change.why)}};
}

OrderedJson time_json(const MeasuredTime& time) {
  return {{"seconds", finite_or_null(time.median)},
          {"samples", time.count},
          {"rank", time.rank < 0 ? OrderedJson() : OrderedJson(time.rank)}};
}

OrderedJson pair_json(Change change, const MeasuredTime& a, const MeasuredTime& b) {
  OrderedJson json = change_json(change);
  json["a"] = time_json(a);
  json["b"] = time_json(b);
  return json;
}

OrderedJson winner_json(const std::optional<ComparedWinner>& winner) {
  return winner ? OrderedJson(winner->text) : OrderedJson();
}

OrderedJson site_json(const SitePair& pair) {
  OrderedJson json = {
      {"site", pair.a->name},
      {"key", pair.a->key},
      {"other_code", pair.loosely},
      {"settled", pair_json(pair.settled, pair.a->settled, pair.b->settled)},
      {"default", pair_json(pair.by_default, pair.a->by_default, pair.b->by_default)},
      {"winner_a", winner_json(pair.a->winner)},
      {"winner_b", winner_json(pair.b->winner)},
      {"winners_differ", pair.winners_differ},
      {"differing", OrderedJson::array()}};
  for (const DifferingParameter& one : pair.differing)
    json["differing"].push_back(
        {{"name", one.name}, {"a", text_or_nothing(one.a)}, {"b", text_or_nothing(one.b)}});
  return json;
}

OrderedJson gain_side_json(const ComparedGain& gain,
                           const std::optional<ComparedLaunches>& launches) {
  const MeasuredGain& figures = gain.figures;
  return {{"verdict", text_or_nothing(gain.verdict)},
          {"launches", launches ? OrderedJson(launches->launches) : OrderedJson()},
          {"state", launches ? OrderedJson(launches->state) : OrderedJson()},
          {"gain", figures.is_none ? OrderedJson(0.0) : finite_or_null(figures.gain)},
          {"bound", figures.is_none ? OrderedJson() : finite_or_null(figures.bound)},
          {"pairs", figures.pairs}};
}

OrderedJson gain_json(const RegionPair& region, const GainPair& pair) {
  OrderedJson json = {{"site", text_or_nothing(pair.a->site)}};
  json.update(change_json(pair.change));
  json["a"] = gain_side_json(*pair.a, region.a->launches);
  json["b"] = gain_side_json(*pair.b, region.b->launches);
  return json;
}

OrderedJson sites_named(const std::vector<const ComparedSite*>& sites) {
  OrderedJson json = OrderedJson::array();
  for (const ComparedSite* site : sites) json.push_back({{"site", site->name}, {"key", site->key}});
  return json;
}

OrderedJson regions_named(const std::vector<const ComparedRegion*>& regions) {
  OrderedJson json = OrderedJson::array();
  for (const ComparedRegion* region : regions)
    json.push_back({{"kind", region->kind},
                    {"name", region->name},
                    {"gpu", text_or_nothing(region->gpu)},
                    {"num_sites", region->sites.size()}});
  return json;
}

OrderedJson region_json(const RegionPair& pair) {
  OrderedJson json = {{"kind", pair.a->kind},
                      {"name", pair.a->name},
                      {"other_hardware", pair.other_hardware},
                      {"sites", OrderedJson::array()},
                      {"gains", OrderedJson::array()},
                      {"only_in_a", sites_named(pair.only_in_a)},
                      {"only_in_b", sites_named(pair.only_in_b)}};
  for (const SitePair& site : pair.sites) json["sites"].push_back(site_json(site));
  for (const GainPair& gain : pair.gains) json["gains"].push_back(gain_json(pair, gain));
  return json;
}

OrderedJson side_json(const ComparedSide& side) {
  OrderedJson json = {{"where", side.where},
                      {"runs", side.runs},
                      {"time", text_or_nothing(side.time)},
                      {"ranks", side.num_ranks},
                      {"simulated", side.simulated},
                      {"facts", OrderedJson::object()}};
  for (const auto& [name, value] : side.facts) json["facts"][name] = value;
  return json;
}

OrderedJson counts_json(const WordCounts& counts) {
  return {{"same", counts.of(Word::Same)},
          {"faster", counts.of(Word::Faster)},
          {"slower", counts.of(Word::Slower)},
          {"unclear", counts.of(Word::Unclear)}};
}

}  // namespace

std::string side_comparison_json(const SideComparison& comparison, const ComparedSide& a,
                                 const ComparedSide& b) {
  OrderedJson json = {{"schema", 1},
                      {"margin", comparison.margin},
                      {"a", side_json(a)},
                      {"b", side_json(b)},
                      {"different_gpus", comparison.has_other_gpu},
                      {"simulated_and_real", comparison.is_simulated_and_real},
                      {"same_run", comparison.is_same_run},
                      {"regions", OrderedJson::array()},
                      {"only_in_a", regions_named(comparison.only_in_a)},
                      {"only_in_b", regions_named(comparison.only_in_b)},
                      {"counts",
                       {{"settled", counts_json(comparison.settled)},
                        {"default", counts_json(comparison.defaults)},
                        {"gains", counts_json(comparison.gains)}}}};
  for (const RegionPair& pair : comparison.regions) json["regions"].push_back(region_json(pair));
  // Names may hold bytes that are not UTF-8, and characters that a terminal takes for commands.
  return json.dump(2, ' ', true, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace contextune::cli
