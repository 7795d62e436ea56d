// Writes the logs of a large job, as the core does: write_large_logs FOLDER RANKS SITES CONFIGS
// Every rank tries every config of every site once. Times are the same in every run of it.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "log/events.hpp"
#include "log/rank_log.hpp"
#include "log/tuning_log.hpp"

using namespace contextune;

namespace {

struct Job {
  std::string folder;
  int ranks = 1;
  std::uint32_t sites = 1;
  std::uint32_t configs = 1;
};

/// The same numbers for the same place, from 0 to 1.
double noise(std::uint64_t place) {
  place = (place + 0x9e3779b97f4a7c15U) * 0xbf58476d1ce4e5b9U;
  place = (place ^ (place >> 27U)) * 0x94d049bb133111ebU;
  return static_cast<double>((place ^ (place >> 31U)) >> 11U) * 0x1p-53;
}

double seconds_of(int rank, std::uint32_t site, std::uint32_t config) {
  const double of_site = 5e-6 * std::pow(1.12, site);
  const double of_config = config == 0 ? 1.0 : 0.8 + 1.5 * noise(site * 4096ULL + config);
  const auto place = static_cast<std::uint64_t>(rank) << 32U | site * 4096ULL | config;
  return of_site * of_config * (1 + 0.002 * rank + 0.01 * noise(place));
}

SiteSpec spec_of(std::uint32_t site, std::uint32_t configs) {
  static const std::vector<std::string> names = {
      "void gemm_kernel<float, 128, 64, 8, true>(float const*, float const*, float*, int)",
      "softmax_forward",
      "void layer_norm<__nv_bfloat16, 1024>(__nv_bfloat16*, __nv_bfloat16 const*, float)",
      "rotary_embedding",
      "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
      "at::detail::Array<char*, 3> >(int, at::native::CUDAFunctor_add<float>, "
      "at::detail::Array<char*, 3>)"};
  SiteSpec spec;
  spec.name = site < names.size() ? names[site] : "softmax_forward_" + std::to_string(site);
  spec.key = Key{{"code", "5f00ab12"}, {"grid", std::int64_t{8} << (site % 8)}};
  for (std::uint32_t i = 0; i < configs; ++i) {
    spec.configs.push_back(Config{{"block", std::int64_t{32} * (1 + i % 32)},
                                  {"per_sm", std::int64_t{1} + i / 32},
                                  {"stages", std::int64_t{2} + i % 3}});
  }
  return spec;
}

// The site's table, and the winner that it ends with.
void write_site(log::TuningLog& tuning, const Job& job, int rank, std::uint32_t site) {
  std::uint32_t best = 0;
  for (std::uint32_t config = 0; config < job.configs; ++config) {
    TrialEvent trial;
    trial.pass = config;
    trial.site = site;
    trial.config = config;
    trial.launches = 1;
    trial.agreed = job.ranks > 1;
    trial.seconds = seconds_of(rank, site, config);
    trial.sm_clock_hz = 1.98e9;
    if (config > 0 && noise(site * 7919ULL + config) < 0.02) {
      trial.status = TrialStatus::LaunchFailed;
      trial.seconds = std::nan("");
    } else if (seconds_of(0, site, config) < seconds_of(0, site, best)) {
      best = config;
    }
    tuning.trial(trial);
  }
  WinnerEvent winner;
  winner.site = site;
  winner.config = best;
  winner.seconds = seconds_of(rank, site, best);
  winner.default_seconds = seconds_of(rank, site, 0);
  winner.reason = best == 0 ? WinnerReason::Margin : WinnerReason::Fastest;
  tuning.winner(winner);
}

void write_agreement(log::TuningLog& tuning, int rank) {
  SyncEvent sync;
  sync.group = 0x5f00ab;
  sync.group_rank = static_cast<std::uint32_t>(rank);
  sync.question = 1;
  sync.hash = 0xfeed;
  sync.wait_seconds = 2e-5 * (1 + rank % 7);
  sync.verdict = Verdict::Committed;
  tuning.sync(sync);
}

void write_end(log::RankLog& log, log::TuningLog& tuning, const Job& job, int rank) {
  if (job.ranks > 1) write_agreement(tuning, rank);
  ConfirmEvent confirm;
  confirm.verdict = ConfirmVerdict::Kept;
  confirm.before_seconds = 0.0124;
  confirm.after_seconds = 0.0110;
  confirm.gain = 0.113;
  confirm.bound = 0.101;
  confirm.pairs = 8;
  confirm.tries = 1;
  tuning.confirm(confirm);
  tuning.fallback(FallbackReason::LaunchFailed, 0, "Too many threads.");
  log::SummaryEvent summary;
  summary.region = "decode";
  summary.passes = job.configs;
  summary.entries = job.configs + 22ULL;
  summary.tuning_seconds = 12.5;
  summary.stage = "finished";
  summary.sites = job.sites;
  summary.tuned = job.sites;
  summary.simulated = true;
  log::write_summary(log, summary);
}

void write_rank(const Job& job, int rank) {
  log::RankLog log({job.folder, rank, "1a26e0", LogLevel::Info});
  log::StartEvent start;
  start.program = "./engine";
  start.gpu = "Simulated GPU";
  start.compute_capability = "9.0";
  start.num_sms = 132;
  start.driver = "13.0";
  start.simulated = true;
  start.regions = "nvtx:decode";
  start.timer = "cupti";
  start.world_size = static_cast<std::uint32_t>(job.ranks);
  log::write_start(log, start);
  log::write_region(log, "decode", 1);
  log::TuningLog tuning(log, "decode", "cupti", true);
  std::vector<log::SiteRun> runs;
  for (std::uint32_t site = 0; site < job.sites; ++site) {
    tuning.add_site(site, spec_of(site, job.configs),
                    {{8U << (site % 8), 1, 1}, {128, 1, 1}, 0, 32, 1, "declared", {}, {}});
    runs.push_back({site, 0});
  }
  for (std::uint32_t pass = 0; pass < job.configs; ++pass) {
    for (log::SiteRun& run : runs) run.config = pass;
    tuning.ran({pass, job.ranks > 1}, runs);
  }
  tuning.end_runs();
  for (std::uint32_t site = 0; site < job.sites; ++site) write_site(tuning, job, rank, site);
  write_end(log, tuning, job, rank);
  log::write_exit(log, 17, true);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::cerr << "write_large_logs FOLDER RANKS SITES CONFIGS\n";
    return 2;
  }
  const Job job{argv[1], std::stoi(argv[2]), static_cast<std::uint32_t>(std::stoul(argv[3])),
                static_cast<std::uint32_t>(std::stoul(argv[4]))};
  for (int rank = 0; rank < job.ranks; ++rank) write_rank(job, rank);
}
