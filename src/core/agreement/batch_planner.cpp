#include "core/agreement/batch_planner.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/agreement/batch_message.hpp"

namespace contextune {
namespace {

// A batch is to take about so long. To report, to agree and to go on takes some 0.5 ms, and a
// config that is far too slow is given up between batches only.
constexpr double agreement_seconds = 0.5e-3;
constexpr double batch_seconds = 10 * agreement_seconds;
constexpr std::size_t least_passes = 4;
constexpr std::size_t most_passes = 128;
// Beyond the table no config is far too slow.
constexpr double experiment_seconds = 4 * batch_seconds;
constexpr std::size_t most_experiment_passes = 256;
// Where the program makes the entries, those that an answer takes are lost to each batch.
constexpr std::uint64_t least_live_passes = 16;
constexpr std::uint64_t most_live_passes = 256;

constexpr std::size_t most_groups = 4096;

/// The cost of a collective from its seconds by rank; absent: the site is no collective.
using CollectiveCost =
    std::function<std::optional<double>(SharedIndex, std::span<const SecondsOfRank> by_rank)>;

/// The result that the ranks saw of one pass, as if it were one rank's. The slowest rank counts; of
/// a collective, and with `least_wait` of the region, the rank that waited least for the others. A
/// site that failed anywhere failed, a site that is missing anywhere is missing, and a rank that
/// did not launch a site adds nothing. Null: nothing is known of the pass.
std::optional<PassResult> reduced(const Batch::Pass& pass,
                                  std::span<const PassReport* const> of_ranks,
                                  std::span<const std::uint32_t> ranks,
                                  const CollectiveCost& cost_of_collective, bool least_wait,
                                  double timeout, std::string& culprit) {
  PassResult result;
  result.pass = PassId{pass.number};
  struct Reduced {
    SiteResult result;
    std::vector<SecondsOfRank> seconds;
  };
  std::vector<Reduced> sites;  // by SharedIndex, of which there are few
  bool region_known = true;
  for (std::size_t r = 0; r < of_ranks.size(); ++r) {
    const PassReport& report = *of_ranks[r];
    if (report.lost) return std::nullopt;
    result.throttled = result.throttled || report.throttled;
    if (report.sm_clock_hz > 0) {
      result.sm_clock_hz = result.sm_clock_hz > 0 ? std::min(result.sm_clock_hz, report.sm_clock_hz)
                                                  : report.sm_clock_hz;
    }
    if (report.region_seconds > 0) {
      const double so_far = result.region_seconds;
      // Who enters it last waits for nobody. How late that is was decided outside of the region.
      result.region_seconds = least_wait && so_far > 0 ? std::min(so_far, report.region_seconds)
                                                       : std::max(so_far, report.region_seconds);
    } else if (!report.sites.empty()) {
      region_known = false;
    }
    for (const SiteResult& seen : report.sites) {
      auto at = std::lower_bound(
          sites.begin(), sites.end(), seen.site,
          [](const Reduced& one, SharedIndex site) { return one.result.site < site; });
      const bool first = at == sites.end() || at->result.site != seen.site;
      if (first) at = sites.insert(at, {seen, {}});
      at->seconds.push_back({ranks[r], seen.seconds});
      SiteResult& one = at->result;
      const bool failed = seen.has_failed() || seen.seconds * seen.launches > timeout;
      if (failed && culprit.empty()) culprit = name_of_rank(ranks[r]);
      if (first) continue;
      const auto severity = [](SiteResult::Status status) {
        switch (status) {
          case SiteResult::Status::Measured:
            return 0;
          case SiteResult::Status::Missing:
            return 1;
          case SiteResult::Status::TooMuchMemory:
            return 2;
          case SiteResult::Status::LaunchFailed:
            return 3;
        }
        return 3;
      };
      if (severity(seen.status) > severity(one.status)) one.status = seen.status;
      if (seen.config != one.config && one.status == SiteResult::Status::Measured) {
        one.status = SiteResult::Status::Missing;
      }
      one.seconds = std::max(one.seconds, seen.seconds);
      one.launches = std::max(one.launches, seen.launches);
      one.in_pieces = one.in_pieces || seen.in_pieces;
      one.connection_bytes = std::max(one.connection_bytes, seen.connection_bytes);
    }
  }
  if (!region_known) result.region_seconds = 0;
  result.sites.reserve(sites.size());
  for (Reduced& one : sites) {
    one.result.seconds =
        cost_of_collective(one.result.site, one.seconds).value_or(one.result.seconds);
    result.sites.push_back(one.result);
  }
  return result;
}

}  // namespace

void BatchPlanner::Events::stage(Stage stage, std::uint32_t generation) {
  list.emplace_back(StageEvent{stage, generation});
}

void BatchPlanner::Events::fallback(FallbackReason reason, SiteIndex site,
                                    const std::string& text) {
  const bool failed =
      reason == FallbackReason::LaunchFailed || reason == FallbackReason::WrongResult ||
      reason == FallbackReason::TrialTimeout || reason == FallbackReason::CommMemory;
  const std::string where =
      failed && !culprit.empty() ? " It was seen on " + culprit + "." : std::string();
  list.emplace_back(FallbackEvent{reason, site, text + where});
}

Payload BatchPlanner::plan(std::span<const std::uint32_t> ranks, std::span<const BatchReport> said,
                           std::string& why) {
  if (refused_.empty()) refused_ = hopeless(ranks, said);
  if (!refused_.empty()) return refusal(refused_);
  const auto pauses = [](const BatchReport& report) { return report.pausing; };
  const bool paused = std::any_of(said.begin(), said.end(), pauses);
  const std::vector<BatchReport> without =
      paused ? without_pauses(said) : std::vector<BatchReport>();
  const std::span<const BatchReport> reports = paused ? std::span(without) : said;
  why = fault_of(ranks, reports);
  if (!why.empty()) return {};
  std::uint64_t first_entry = 0;
  for (const BatchReport& report : reports) first_entry = std::max(first_entry, report.horizon + 1);
  leases_.hear(ranks, reports, first_entry);
  // The last batch was planned and not committed: it holds all that these reports say already.
  if (reports.front().batch != last_.number) return issue(last_, first_entry);
  leases_.committed(last_);
  bool bounded = false;
  for (const BatchReport& report : reports) {
    now_ = std::max(now_, report.elapsed_seconds);
    bounded = bounded || report.bounded;
  }
  if (!tuning_) {
    TuningOptions options = reports.front().options;
    // Where the program makes the entries, more of them with other configs are its own time.
    if (!bounded) options.look_seconds = agreement_seconds;
    tuning_.emplace(options, &events_);
  }
  take_results(ranks, reports);
  take_sites(ranks, reports);

  Batch batch;
  batch.number = last_.number + 1;
  // Ranks that have seen nothing yet have only met.
  const bool meets = sites_.empty() && !bounded && last_.number == 0;
  if (paused) {
    batch.paused = true;
  } else if (meets) {
    batch.waiting = Waiting::Results;
  } else if (has_passes_ || collectives_are_ready()) {
    plan_passes(batch, bounded, passes_ahead(reports));
  } else {
    batch.waiting = Waiting::Builds;  // all that is there from the start is admitted together
  }
  has_passes_ = has_passes_ || !batch.passes.empty();
  batch.new_sites = std::exchange(taken_up_, {});
  batch.winners.assign(tuning_->winners().begin(), tuning_->winners().end());
  const TuningProgress progress = tuning_->progress();
  batch.stage = progress.stage;
  batch.finished = tuning_->finished();
  batch.tuning_seconds = progress.seconds;
  name_ranks(ranks);
  batch.events = std::exchange(events_.list, {});
  before_hash_ = last_hash_;
  before_passes_ = last_.passes.size();
  last_ = std::move(batch);
  return issue(last_, first_entry);
}

Payload BatchPlanner::refusal(std::string why) {
  Batch batch;
  batch.refused = std::move(why);
  return encode(batch);
}

Payload BatchPlanner::issue(Batch& batch, std::uint64_t first_entry) {
  batch.first_entry = first_entry;
  put_in_step(batch);
  Payload bytes = encode(batch);
  last_hash_ = hash_of(bytes);
  return bytes;
}

void BatchPlanner::take_results(std::span<const std::uint32_t> ranks,
                                std::span<const BatchReport> reports) {
  if (last_.passes.empty()) return;
  for (Site& site : sites_) site.launched = false;
  const CollectiveCost cost = [&](SharedIndex site, std::span<const SecondsOfRank> by_rank) {
    return sites_[site].shared.collective ? std::optional(leases_.cost(site, by_rank))
                                          : std::nullopt;
  };
  const bool any_collective = std::any_of(sites_.begin(), sites_.end(),
                                          [](const Site& site) { return site.shared.collective; });
  double seconds = 0;
  std::size_t measured = 0;
  std::vector<const PassReport*> of_ranks;
  for (std::size_t p = 0; p < last_.passes.size(); ++p) {
    of_ranks.clear();
    double charged = 0;  // the ranks wait for each other
    for (const BatchReport& report : reports) {
      of_ranks.push_back(&report.passes[p]);
      charged = std::max(charged, -report.passes[p].region_seconds);
      for (const SiteResult& seen : report.passes[p].sites) sites_[seen.site].launched = true;
    }
    // A config that is kept has to be faster where it is slowest.
    const bool least_wait = any_collective && last_.passes[p].stage != Stage::Confirm;
    const auto result = reduced(last_.passes[p], of_ranks, ranks, cost, least_wait,
                                reports.front().options.trial_timeout, events_.culprit);
    tuning_->spend(charged, PassId{last_.passes[p].number});
    if (!result && overrun_on(p, ranks, reports)) continue;
    if (!result) {
      tuning_->add_result(PassResult::none(PassId{last_.passes[p].number}), now_);
    } else {
      if (result->region_seconds > 0) {
        seconds += result->region_seconds;
        ++measured;
      }
      tuning_->add_result(*result, now_);
    }
    events_.culprit.clear();
  }
  if (measured > 0) pass_seconds_ = seconds / static_cast<double>(measured);
  if (!overran_on_.empty()) {
    events_.culprit = std::exchange(overran_on_, {});
    tuning_->overrun(now_);
    events_.culprit.clear();
  }
}

bool BatchPlanner::overrun_on(std::size_t pass, std::span<const std::uint32_t> ranks,
                              std::span<const BatchReport> reports) {
  if (!overran_on_.empty())
    return true;  // the first one is to blame, and what came after it waited
  for (std::size_t r = 0; r < reports.size(); ++r)
    if (reports[r].overran && reports[r].passes[pass].lost) overran_on_ = name_of_rank(ranks[r]);
  return !overran_on_.empty();
}

std::size_t BatchPlanner::passes_ahead(std::span<const BatchReport> reports) const {
  std::uint64_t live = 0;
  for (const BatchReport& report : reports)
    if (report.bounded) live = std::max({live, least_live_passes, 2 * report.margin});
  if (live > 0) return static_cast<std::size_t>(std::min(live, most_live_passes));
  if (pass_seconds_ <= 0) return least_passes;
  const bool in_table = tuning_->progress().stage == Stage::Table;
  const double fit = std::ceil((in_table ? batch_seconds : experiment_seconds) / pass_seconds_);
  const std::size_t most = in_table ? most_passes : most_experiment_passes;
  return static_cast<std::size_t>(
      std::clamp(fit, static_cast<double>(least_passes), static_cast<double>(most)));
}

void BatchPlanner::plan_passes(Batch& batch, bool bounded, std::size_t most) {
  std::vector<SiteIndex> launched;
  for (SharedIndex index = 0; index < sites_.size(); ++index)
    if (sites_[index].launched) launched.push_back(index);
  // A site that appears late is admitted when it was there in two entries, which are none here.
  int idle_entries = 0;
  while (batch.passes.size() < most) {
    const PassPlan plan = tuning_->begin_pass(PassId{tuning_->progress().passes}, now_, bounded);
    if (plan.counted) {
      batch.passes.push_back({plan.number, plan.stage, plan.measure,
                              std::vector(plan.configs.begin(), plan.configs.end())});
    }
    tuning_->end_pass(plan.pass, launched, {}, now_);
    if (plan.counted) continue;
    batch.waiting = plan.waiting;
    if (!batch.passes.empty() || plan.stage != Stage::Finished || ++idle_entries > 2) break;
  }
  if (!batch.passes.empty()) batch.waiting = Waiting::Nothing;
}

Payload GroupPlanners::decide(const Topic& topic, std::span<const Payload> said, std::string& why) {
  const std::vector<std::uint32_t> ranks(topic.ranks.begin(), topic.ranks.end());
  std::vector<BatchReport> reports(said.size());
  for (std::size_t r = 0; r < said.size(); ++r) {
    if (decode(said[r], reports[r])) continue;
    return BatchPlanner::refusal("what " + name_of_rank(ranks[r]) + " said cannot be read");
  }
  if (planners_.size() >= most_groups && !planners_.contains({topic.group, topic.ranks})) {
    why = "there are more than " + std::to_string(most_groups) + " groups of ranks";
    return {};
  }
  return planners_[{topic.group, topic.ranks}].plan(ranks, reports, why);
}

}  // namespace contextune
