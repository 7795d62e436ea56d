#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/search/region_tuning.hpp"

namespace contextune::tests {

using Configs = std::vector<std::uint32_t>;

inline std::vector<Config> make_configs(std::size_t count) {
  std::vector<Config> configs;
  for (std::size_t i = 0; i < count; ++i) configs.push_back({{"v", static_cast<std::int64_t>(i)}});
  return configs;
}

/// The ancestor's rule. It knows no cut-off either.
inline TuningOptions ancestor(int n_warmup, int n_repeat) {
  TuningOptions options;
  options.n_warmup = n_warmup;
  options.n_repeat = n_repeat;
  options.selection = Selection::Mean;
  options.margin = 0;
  options.refine = false;
  options.confirm = false;
  options.cutoff = 0;
  return options;
}

/// A program with one region, on a clock of its own, as its tuning sees it. Everything that a test
/// varies is a member.
class FakeProgram {
 public:
  /// A site whose configs take these seconds; launched in every entry unless `when` says otherwise.
  struct Site {
    std::string name;
    std::vector<double> seconds;
    std::function<bool(std::uint64_t entry)> when = [](std::uint64_t) { return true; };
    std::uint32_t launches = 1;
    bool in_pieces = false;
    std::set<std::uint32_t> failing = {};
    std::set<std::uint32_t> replaced = {};  ///< by the default, as the result alone tells
    Objective objective = Objective::Own;
    bool ready = true;
    std::uint32_t decisions = 0;  ///< in each entry; above 0: a collective
    Key key = {};
    std::optional<StoredWinner> stored = {};
    bool outdated = false;
    Suspicions suspicions = {};
    SiteIndex index = no_site;
    bool added = false;
  };

  virtual ~FakeProgram() = default;

  /// The first is 0: the number of a pass where each entry is one.
  PassId next_pass() { return PassId{num_begun_++}; }

  /// One entry, as a program and its interception would do it. An entry that is not `bounded` and
  /// no pass is not made.
  PassPlan entry(bool bounded) {
    PassPlan plan = tuned().begin_pass(next_pass(), now, bounded);
    if (!bounded && !plan.counted) {
      ++num_entries;
      while (!results.empty()) hand_over_result();
      return plan;
    }
    configs_run.assign(plan.configs.begin(), plan.configs.end());
    std::vector<SiteIndex> launched;
    std::vector<SiteIndex> failed;
    PassResult result;
    result.pass = plan.pass;
    double region = 0;
    for (Site& site : sites) {
      if (!site.when(num_entries)) continue;
      const bool is_planned = site.added;
      if (!site.added) add(site);
      if (site.index == no_site) continue;
      // A site beyond the end of the plan runs config 0.
      if (configs_run.size() <= site.index) configs_run.resize(site.index + 1, 0);
      launched.push_back(site.index);
      SiteResult one = launch(site, config_of(site, plan, is_planned));
      if (site.failing.contains(configs_run[site.index]))
        failed.push_back(site.index);
      else
        region += site.seconds[configs_run[site.index]] * site.launches;
      if (lost_samples.contains({plan.number, site.index}))
        one.status = SiteResult::Status::Missing;
      result.sites.push_back(one);
    }
    if (region_time) region = region_time(configs_run);
    now += region + gap;
    result.region_seconds = region * (1 + noise * normal());
    result.throttled = throttled.contains(plan.number);
    if (held_up > 0 && plan.measure != Measure::Nothing)
      tuned().spend(std::exchange(held_up, 0), plan.pass);
    tuned().end_pass(plan.pass, launched, failed, now);
    if (plan.measure == Measure::Span) result.sites.clear();
    if (plan.counted) rows.emplace_back(plan.number, configs_run);
    ++num_entries;
    if (plan.measure != Measure::Nothing && !lost_passes.contains(plan.number) && !lose_all)
      results.push_back(std::move(result));
    while (results.size() > lag || (!results.empty() && !plan.counted)) hand_over_result();
    plan.configs = configs_run;
    return plan;
  }

  /// The config of a site when nothing is tried; its default where it never came up.
  [[nodiscard]] std::uint32_t winner(SiteIndex site) {
    return site < tuned().winners().size() ? tuned().winners()[site] : 0;
  }

  std::deque<Site> sites;
  std::vector<std::pair<std::uint64_t, Configs>> rows;  ///< counted passes
  Configs configs_run;
  std::set<std::uint64_t> throttled;
  std::set<std::uint64_t> lost_passes;
  std::set<std::pair<std::uint64_t, SiteIndex>> lost_samples;
  bool lose_all = false;
  std::function<double(const Configs&)> region_time;
  double noise = 0;
  double now = 0;
  double gap = 0;
  double held_up = 0;  ///< seconds that are charged for the next pass
  std::uint64_t num_entries = 0;
  std::size_t lag = 0;  ///< results come this many measured passes late
  bool backwards = false;
  std::deque<PassResult> results;
  std::mt19937_64 engine{1};

 protected:
  [[nodiscard]] virtual RegionTuning& tuned() = 0;
  /// The config that a launched site runs; `is_planned`: it was there as the entry began.
  virtual std::uint32_t config_of(const Site& site, const PassPlan& /*plan*/, bool /*is_planned*/) {
    return configs_run[site.index];
  }

 private:
  void add(Site& site) {
    SiteSpec spec;
    spec.name = site.name;
    spec.key = site.key;
    spec.configs = make_configs(site.seconds.size());
    spec.objective = site.objective;
    spec.ready = site.ready;
    spec.collective = site.decisions > 0;
    spec.stored = site.stored;
    spec.outdated = site.outdated;
    spec.suspicions = site.suspicions;
    site.index = tuned().add_site(std::move(spec));
    site.added = true;
    if (site.index == no_site) return;
    if (configs_run.size() <= site.index) configs_run.resize(site.index + 1, 0);
    configs_run[site.index] = winner(site.index);
  }
  SiteResult launch(const Site& site, std::uint32_t config) {
    configs_run[site.index] = config;
    SiteResult one;
    one.site = site.index;
    if (!site.failing.contains(config) && !site.replaced.contains(config)) one.config = config;
    one.launches = site.launches;
    one.in_pieces = site.in_pieces;
    one.seconds = site.seconds[one.config] * (1 + noise * normal());
    return one;
  }
  void hand_over_result() {
    const bool from_back = backwards && results.size() > 1;
    tuned().add_result(from_back ? results.back() : results.front(), now);
    if (from_back)
      results.pop_back();
    else
      results.pop_front();
  }
  double normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(engine() >> 11) * 0x1p-53;
    return sum;
  }

  std::uint64_t num_begun_ = 0;
};

}  // namespace contextune::tests
