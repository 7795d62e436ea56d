#include "cli/page/region_data.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/page/columns.hpp"
#include "cli/report/region_mode.hpp"
#include "cli/report/summary.hpp"

namespace contextune::cli {
namespace {

using Json = nlohmann::ordered_json;

/// Kernels of --discover that a page lists for one region.
constexpr std::size_t most_kernels = 400;

// JSON has no NaN, and six digits are more than a measurement has.
Json number(double value) {
  if (!std::isfinite(value) || value == 0) return std::isfinite(value) ? Json(0) : Json();
  const double scale = std::pow(10.0, 5 - std::floor(std::log10(std::abs(value))));
  const double rounded = std::round(value * scale) / scale;
  return std::isfinite(rounded) ? Json(rounded) : Json(value);
}

/// Puts what several ranks have alike into one entry, which names them.
class ByContent {
 public:
  void add(Json entry, std::size_t rank) {
    const auto [place, fresh] = places_.emplace(entry.dump(), list_.size());
    if (fresh) {
      entry["ranks"] = Json::array();
      list_.push_back(std::move(entry));
    }
    list_[place->second]["ranks"].push_back(rank);
  }
  [[nodiscard]] Json take() { return std::move(list_); }

 private:
  Json list_ = Json::array();
  std::map<std::string, std::size_t> places_;
};

Json confirm_data(const log::ConfirmReport& confirm, StringTable& strings) {
  Json gains = Json::array();
  for (const double gain : confirm.gains) gains.push_back(number(gain));
  return {{"verdict", strings.place_of(confirm.verdict)},
          {"site", strings.place_of(confirm.site)},
          {"before", number(confirm.before_seconds)},
          {"after", number(confirm.after_seconds)},
          {"gain", number(confirm.gain)},
          {"bound", number(confirm.bound)},
          {"pairs", confirm.pairs},
          {"tries", confirm.tries},
          {"gains", gains}};
}

Json left_out_data(const log::LeftOutReport& one, std::size_t site, StringTable& strings) {
  return {{"place", site},
          {"verdict", strings.place_of(one.verdict)},
          {"before", number(one.before_seconds)},
          {"after", number(one.after_seconds)},
          {"gain", number(one.gain)},
          {"bound", number(one.bound)},
          {"pairs", one.pairs}};
}

std::size_t place_of_site(const RegionOfJob& region, const log::LeftOutReport& one) {
  for (std::size_t i = 0; i < region.sites.size(); ++i)
    for (const log::SiteReport* site : region.sites[i].by_rank)
      if (site != nullptr && site->name == one.site && site->key == one.key) return i;
  return region.sites.size();
}

Json submission_data(const log::SubmissionEvent& of, StringTable& strings) {
  Json json = {{"launches", strings.place_of(of.launches)},
               {"state", strings.place_of(of.state)},
               {"run", of.run},
               {"most_runs", of.most_runs},
               {"ordinary", strings.place_of(of.ordinary)},
               {"screened", strings.place_of(of.screened)},
               {"why", strings.place_of(of.why)},
               {"load", number(of.load_seconds)},
               {"graph_bytes", of.graph_bytes}};
  for (const auto& [name, count] : log::submission_counts) json[std::string(name)] = of.*count;
  return json;
}

Json stages_data(const log::RegionReport& region, StringTable& strings) {
  Json list = Json::array();
  for (const log::StageReport& stage : region.stages) {
    const bool again = !list.empty() && list.back()[0] == strings.place_of(stage.stage) &&
                       list.back()[1] == stage.generation;
    if (!again)
      list.push_back({strings.place_of(stage.stage), stage.generation, number(stage.seconds)});
  }
  return list;
}

Json replay_data(const log::ReplayReport& of, StringTable& strings) {
  return {{"visit", of.visit},
          {"operations", of.operations},
          {"replays", of.replays},
          {"seconds", number(of.seconds)},
          {"footprint", of.footprint_bytes},
          {"dirty", of.dirty_bytes},
          {"save", number(of.save_seconds)},
          {"restore", number(of.restore_seconds)},
          {"hash", number(of.hash_seconds)},
          {"why_restored", strings.place_of(of.why_restored)},
          {"wait", number(of.wait_seconds)},
          {"longest_wait", number(of.longest_wait_seconds)}};
}

/// What of the region is a rank's own.
Json rank_data(const log::RegionReport& region, const log::ProcessReport& process,
               StringTable& strings) {
  const RegionModes modes(process);
  const RegionMode mode = modes.of(region);
  Json replays = Json::array();
  for (const log::ReplayReport& replay : region.replays)
    replays.push_back(replay_data(replay, strings));
  return {{"mode", strings.place_of(mode.word)},
          {"why_live", strings.place_of(mode.why == nullptr ? "" : mode.why->reason)},
          {"passes", region.passes},
          {"entries", region.entries},
          {"tuning", number(region.tuning_seconds)},
          {"stage", strings.place_of(region.stage)},
          {"began", strings.place_of(region.stages.empty() ? "" : region.stages.front().time)},
          {"stages", stages_data(region, strings)},
          {"replays", replays}};
}

Json kernels_data(const log::RegionReport& region, StringTable& strings) {
  std::vector<const log::KernelReport*> kernels;
  for (const log::KernelReport& kernel : region.kernels) kernels.push_back(&kernel);
  const auto seconds = [](const log::KernelReport* kernel) {
    return std::isfinite(kernel->seconds) ? kernel->seconds : 0;
  };
  std::ranges::stable_sort(kernels,
                           [&](const auto* a, const auto* b) { return seconds(a) > seconds(b); });
  double total = 0;
  for (const log::KernelReport* kernel : kernels) total += seconds(kernel);
  Json list = Json::array();
  for (std::size_t i = 0; i < std::min(kernels.size(), most_kernels); ++i) {
    const log::KernelReport& kernel = *kernels[i];
    list.push_back({strings.place_of(kernel.name), number(kernel.seconds),
                    number(total > 0 ? seconds(&kernel) / total : 0), kernel.launches,
                    strings.place_of(kernel.grid), strings.place_of(kernel.block), kernel.registers,
                    kernel.shared_bytes, strings.place_of(kernel.params)});
  }
  return list;
}

}  // namespace

Json region_data(const RegionOfJob& of_job, const std::vector<const log::ProcessReport*>& processes,
                 StringTable& strings, PageRoom& room) {
  ByContent found;
  ByContent words;
  ByContent confirms;
  ByContent left_out;
  ByContent submissions;
  Json ranks = Json::array();
  const log::RegionReport* first = nullptr;
  for (std::size_t rank = 0; rank < processes.size(); ++rank) {
    const log::RegionReport* const region = of_job.by_rank[rank];
    ranks.push_back(region == nullptr ? Json() : rank_data(*region, *processes[rank], strings));
    if (region == nullptr) continue;
    if (first == nullptr) first = region;
    if (!region->found.empty()) found.add({{"text", strings.place_of(region->found)}}, rank);
    const RegionModes modes(*processes[rank]);
    words.add({{"text", shown_lines(region_lines(*processes[rank], modes, *region))}}, rank);
    for (const log::ConfirmReport& confirm : region->confirms)
      confirms.add(confirm_data(confirm, strings), rank);
    if (region->stored_confirm) {
      Json stored = confirm_data(*region->stored_confirm, strings);
      stored["stored"] = true;
      confirms.add(std::move(stored), rank);
    }
    for (const log::LeftOutReport& one : region->left_out)
      left_out.add(left_out_data(one, place_of_site(of_job, one), strings), rank);
    if (region->submission) submissions.add(submission_data(*region->submission, strings), rank);
  }
  Json json = {{"name", strings.place_of(of_job.name)},
               {"found", found.take()},
               {"words", words.take()},
               {"confirms", confirms.take()},
               {"left_out", left_out.take()},
               {"submissions", submissions.take()},
               {"ranks", ranks},
               {"sites", Json::array()}};
  for (const SiteOfJob& site : of_job.sites)
    json["sites"].push_back(site_data(site, strings, room.times));
  json["tables"] = pass_data(of_job, strings, room.cells);
  json["kernels"] = kernels_data(*first, strings);
  json["periods"] = Json::array();
  for (const std::string& period : first->periods)
    json["periods"].push_back(strings.place_of(period));
  json["ranges"] = strings.place_of(first->ranges);
  return json;
}

}  // namespace contextune::cli
