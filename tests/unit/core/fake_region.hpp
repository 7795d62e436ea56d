#pragma once

#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/search/tuning.hpp"
#include "recorder.hpp"

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

/// A program with one region, on a clock of its own. Everything that a test varies is a member.
class FakeRegion {
 public:
  explicit FakeRegion(const TuningOptions& options) : tuning(options, &recorder) {}

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
    Key key = {};
    std::optional<StoredWinner> stored = {};
    Suspicions suspicions = {};
    SiteIndex index = no_site;
    bool added = false;
  };

  /// The first is 0: the number of a pass where each entry is one.
  PassId next_pass() { return PassId{num_begun_++}; }

  /// One entry, as a program and its interception would do it.
  PassPlan entry() {
    PassPlan plan = tuning.begin_pass(next_pass(), now, bounded);
    configs_run.assign(plan.configs.begin(), plan.configs.end());
    std::vector<SiteIndex> launched;
    std::vector<SiteIndex> failed;
    PassResult result;
    result.pass = plan.pass;
    for (Site& site : sites) {
      if (!site.when(num_entries)) continue;
      if (!site.added) {
        SiteSpec spec;
        spec.name = site.name;
        spec.key = site.key;
        spec.configs = make_configs(site.seconds.size());
        spec.objective = site.objective;
        spec.ready = site.ready;
        spec.stored = site.stored;
        spec.suspicions = site.suspicions;
        site.index = tuning.add_site(std::move(spec));
        site.added = true;
        if (site.index == no_site) continue;
        configs_run.resize(site.index + 1, 0);
        configs_run[site.index] = tuning.winners()[site.index];
      }
      if (site.index == no_site) continue;
      std::uint32_t config = configs_run[site.index];
      launched.push_back(site.index);
      if (site.failing.contains(config)) {
        failed.push_back(site.index);
        config = 0;
      }
      if (site.replaced.contains(config)) config = 0;
      SiteResult one;
      one.site = site.index;
      one.config = config;
      one.launches = site.launches;
      one.in_pieces = site.in_pieces;
      one.seconds = site.seconds[config] * (1 + noise * normal());
      if (lost_samples.contains({plan.number, site.index}))
        one.status = SiteResult::Status::Missing;
      result.sites.push_back(one);
    }
    double region = 0;
    for (const Site& site : sites)
      if (site.added && site.index != no_site && site.when(num_entries) &&
          !site.failing.contains(configs_run[site.index]))
        region += site.seconds[configs_run[site.index]] * site.launches;
    if (region_time) region = region_time(configs_run);
    now += region + gap;
    result.region_seconds = region * (1 + noise * normal());
    result.throttled = throttled.contains(plan.number);
    tuning.end_pass(plan.pass, launched, failed, now);
    if (plan.measure == Measure::Span) result.sites.clear();
    if (plan.counted) rows.emplace_back(plan.number, configs_run);
    ++num_entries;
    if (plan.measure != Measure::Nothing && !lost_passes.contains(plan.number) && !lose_all) {
      results.push_back(std::move(result));
    }
    while (results.size() > lag || (results.size() > 0 && !plan.counted && lag > 0)) {
      const bool from_back = backwards && results.size() > 1;
      tuning.add_result(from_back ? results.back() : results.front(), now);
      if (from_back)
        results.pop_back();
      else
        results.pop_front();
    }
    plan.configs = configs_run;
    return plan;
  }

  /// Entries until it is finished; fails the test by exception if it never is.
  void run(std::uint64_t most_entries = 5000) {
    while (!tuning.finished()) {
      if (num_entries >= most_entries) throw std::runtime_error("the tuning did not finish");
      entry();
    }
  }

  /// What one site ran, pass by pass.
  [[nodiscard]] Configs column(SiteIndex site) const {
    Configs column;
    for (const auto& [pass, configs] : rows)
      column.push_back(site < configs.size() ? configs[site] : 0);
    return column;
  }
  [[nodiscard]] std::uint32_t winner(SiteIndex site) const { return tuning.winners()[site]; }

  Recorder recorder;
  Tuning tuning;
  std::deque<Site> sites;
  std::vector<std::pair<std::uint64_t, Configs>> rows;  ///< counted passes
  Configs configs_run;
  std::set<std::uint64_t> throttled;
  std::set<std::uint64_t> lost_passes;
  std::set<std::pair<std::uint64_t, SiteIndex>> lost_samples;
  bool lose_all = false;
  bool bounded = true;  ///< the program makes the entries
  std::function<double(const Configs&)> region_time;
  double noise = 0;
  double now = 0;
  double gap = 0;
  std::uint64_t num_entries = 0;
  std::size_t lag = 0;  ///< results come this many measured passes late
  bool backwards = false;
  std::deque<PassResult> results;
  std::mt19937_64 engine{1};

 private:
  std::uint64_t num_begun_ = 0;
  double normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(engine() >> 11) * 0x1p-53;
    return sum;
  }
};

}  // namespace contextune::tests
