#include "cli/report/rank_job.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace contextune::cli {
namespace {

using log::ProcessReport;
using log::RegionReport;
using log::SiteReport;

struct Candidate {
  RankJob job;
  std::string program;
  std::string first_time;  // in this form times compare as texts
  std::string last_time;
  std::set<std::string> agreed;  // what its ranks committed
};

std::set<std::string> agreed_by(const ProcessReport& process) {
  std::set<std::string> agreed;
  for (const log::SyncReport& sync : process.syncs) {
    if (sync.verdict == "committed")
      agreed.insert(sync.group + ' ' + std::to_string(sync.question) + ' ' + sync.hash + ' ' +
                    sync.region);
  }
  return agreed;
}

// How well a process that a launcher started by itself, with a run of its own, fits into a job:
// nothing if it does not, else how many agreements they have in common. Jobs side by side that run
// the same program share the first few, but not those that follow from measurements.
std::optional<std::size_t> fit(const ProcessReport& process, const std::set<std::string>& agreed,
                               const Candidate& known) {
  const bool may = !known.job.ranks.contains(process.rank) && !process.program.empty() &&
                   process.program == known.program && process.first_time <= known.last_time &&
                   known.first_time <= process.last_time;
  if (!may) return std::nullopt;
  if (agreed.empty() || known.agreed.empty()) return 0;
  const auto common = static_cast<std::size_t>(std::ranges::count_if(
      agreed, [&](const std::string& one) { return known.agreed.contains(one); }));
  return common > 0 ? std::optional(common) : std::nullopt;
}

Candidate& job_for(std::vector<Candidate>& candidates, const ProcessReport& process,
                   const std::set<std::string>& agreed) {
  Candidate* best = nullptr;
  std::optional<std::size_t> best_fit;
  for (Candidate& known : candidates) {
    const auto& runs = known.job.runs;
    if (std::ranges::find(runs, process.run) != runs.end()) return known;
    const auto this_fit = fit(process, agreed, known);
    if (this_fit && (!best_fit || *this_fit > *best_fit)) {
      best = &known;
      best_fit = this_fit;
    }
  }
  if (best != nullptr) return *best;
  Candidate& fresh = candidates.emplace_back();
  fresh.program = process.program;
  fresh.first_time = process.first_time;
  fresh.last_time = process.last_time;
  return fresh;
}

bool has_winner(const ProcessReport& process) {
  return std::ranges::any_of(process.regions, [](const RegionReport& r) {
    return std::ranges::any_of(r.sites,
                               [](const SiteReport& site) { return site.winner.has_value(); });
  });
}

bool goes_before(const ProcessReport& a, const ProcessReport& b) {
  return std::pair(has_winner(a), a.first_time) > std::pair(has_winner(b), b.first_time);
}

}  // namespace

std::vector<RankJob> jobs_of(const std::vector<ProcessReport>& processes) {
  std::vector<Candidate> candidates;
  for (const ProcessReport& process : processes) {
    std::set<std::string> agreed = agreed_by(process);
    Candidate& chosen = job_for(candidates, process, agreed);
    auto& runs = chosen.job.runs;
    if (std::ranges::find(runs, process.run) == runs.end()) runs.push_back(process.run);
    chosen.first_time = std::min(chosen.first_time, process.first_time);
    chosen.last_time = std::max(chosen.last_time, process.last_time);
    chosen.agreed.merge(agreed);
    const ProcessReport*& known = chosen.job.ranks[process.rank];
    if (known == nullptr || goes_before(process, *known)) known = &process;
  }
  std::vector<RankJob> jobs;
  jobs.reserve(candidates.size());
  for (Candidate& candidate : candidates) jobs.push_back(std::move(candidate.job));
  return jobs;
}

}  // namespace contextune::cli
