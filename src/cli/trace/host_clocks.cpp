#include "cli/trace/host_clocks.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace contextune::cli {
namespace {

using GroupQuestion = std::pair<std::string, std::uint64_t>;  // with its number
using Verdicts = std::map<GroupQuestion, double>;             // when a host heard them first

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void add_verdicts(Verdicts& verdicts, const log::ProcessReport& process) {
  for (const log::SyncReport& sync : process.syncs) {
    const double heard_at = sync.asked_at + (sync.wait_seconds > 0 ? sync.wait_seconds : 0);
    if (sync.verdict != "committed" || !std::isfinite(heard_at)) continue;
    const auto [known, fresh] =
        verdicts.emplace(GroupQuestion(sync.group, sync.question), heard_at);
    if (!fresh) known->second = std::min(known->second, heard_at);
  }
}

}  // namespace

HostClocks::HostClocks(const std::vector<const log::ProcessReport*>& processes) {
  struct Run {
    int first_rank = 0;
    std::string first_host;
    std::map<std::string, Verdicts> hosts;
  };
  std::map<std::string, Run> runs;
  for (const log::ProcessReport* process : processes) {
    if (process->host.empty()) continue;
    Run& run = runs[process->run];
    if (run.hosts.empty() || process->rank < run.first_rank) {
      run.first_rank = process->rank;
      run.first_host = process->host;
    }
    add_verdicts(run.hosts[process->host], *process);
  }
  for (const auto& [id, run] : runs) {
    const Verdicts& reference = run.hosts.at(run.first_host);
    for (const auto& [host, verdicts] : run.hosts) {
      if (host == run.first_host) continue;
      std::vector<double> apart;
      for (const auto& [question, at] : verdicts)
        if (const auto same = reference.find(question); same != reference.end())
          apart.push_back(at - same->second);
      const double ahead = apart.empty() ? 0 : median(apart);
      ahead_.emplace(std::pair(id, host), ahead);
      differences_.push_back({host, ahead, apart.size()});
    }
  }
}

double HostClocks::ahead(const log::ProcessReport& process) const {
  const auto found = ahead_.find({process.run, process.host});
  return found == ahead_.end() ? 0 : found->second;
}

}  // namespace contextune::cli
