// Writes the logs of a run of several ranks, as the core does: write_rank_logs FOLDER RANKS [WHAT]
// In it rank R takes R percent longer for the winner than rank 0, and waits R ms for the others.
// WHAT goes wrong on the last rank: "winner", "config", "site", "fallback", "hash", "verdict",
// "question", "gpu", "killed"; or that rank has "found" a region of its own; or rank 1 says
// "nothing"; or each rank tunes "alone"; or all have "collectives".
#include <cstdlib>
#include <string>

#include "log/events.hpp"
#include "log/rank_log.hpp"
#include "log/tuning_log.hpp"

using namespace contextune;

namespace {

SiteSpec site_named(const std::string& name, std::int64_t winning_block) {
  SiteSpec spec;
  spec.name = name;
  spec.key = Key{{"n", std::int64_t{1024}}};
  spec.configs = {Config{{"block", std::int64_t{64}}}, Config{{"block", winning_block}}};
  return spec;
}

void write_agreements(log::TuningLog& tuning, int rank, const std::string& wrong) {
  SyncEvent sync;
  sync.group = 0x5f00ab;
  sync.group_rank = static_cast<std::uint32_t>(rank);
  sync.wait_seconds = 1e-3 * rank;
  sync.question = 1;
  sync.verdict = Verdict::Aborted;
  sync.why = "rank 1 did not come within 5 s";
  tuning.sync(sync);
  if (wrong == "question") return;
  sync.question = 2;
  sync.verdict = wrong == "verdict" ? Verdict::Unknown : Verdict::Committed;
  sync.hash = wrong == "hash" ? 0xbad : 0xfeed;
  sync.why = "rank 0 is lost";
  tuning.sync(sync);
}

void write_collective(log::TuningLog& tuning, SiteIndex index, Key key, const char* own_choice,
                      std::uint32_t winning) {
  SiteSpec spec;
  spec.name = "all_reduce";
  spec.key = std::move(key);
  spec.configs = {Config(), Config{{"algorithm", "Tree"}, {"protocol", "LL"}, {"channels", 8}},
                  Config{{"algorithm", "NVLS"}, {"protocol", "Simple"}, {"channels", 0}}};
  log::SiteFacts facts;
  facts.provider = "collective";
  facts.default_choice = own_choice;
  tuning.add_site(index, spec, facts);
  WinnerEvent winner;
  winner.site = index;
  winner.config = winning;
  tuning.winner(winner);
}

void write_collectives(log::TuningLog& tuning) {
  const Key of_four{{"ranks", 4}, {"nodes", 1}};
  const auto key = [&](const char* type, const char* bytes) {
    Key made{{"type", type}, {"op", "sum"}, {"bytes", bytes}};
    for (const auto& [name, part] : of_four.entries()) made.add(name, part);
    return made;
  };
  write_collective(tuning, 1, key("i32", "4097-8192"), "Ring LL", 1);
  write_collective(tuning, 2, key("f32", "8193-16384"), "Ring LL128", 0);
  write_collective(tuning, 3, key("i32", "8193-16384"), "Ring LL128", 1);
  Key grouped = key("i32", "over:1048576");
  grouped.add("grouped", 3);
  write_collective(tuning, 4, grouped, "Ring Simple", 2);
}

void write_found(log::RankLog& log) {
  log::write_found_region(log, "auto", "every launch; 9 entries; 90 % of the elapsed time");
  log::TuningLog tuning(log, "auto", "events", true);
  tuning.add_site(0, site_named("launches", 256), {});
  tuning.winner({});
  log::write_fallback(log, FallbackReason::NotSettled, "auto", "launches", {});
  log::SubmissionEvent event;
  event.launches = "chained";
  event.state = "open";
  log::write_submission(log, "auto", event);
}

void write_rank(const std::string& folder, int rank, const std::string& wrong) {
  const char* const run = std::getenv("CONTEXTUNE_RUN_ID");
  log::RankLog log({folder, rank, run != nullptr ? run : "7f3a", LogLevel::Info});
  log::StartEvent start;
  start.program = "./engine";
  start.gpu = wrong == "gpu" ? "Another GPU" : "Simulated GPU";
  start.compute_capability = "9.0";
  start.num_sms = 132;
  start.driver = "13.0";
  start.simulated = true;
  start.regions = "nvtx:step";
  start.timer = "cupti";
  log::write_start(log, start);
  log::TuningLog tuning(log, "step", "cupti", true);
  const log::SiteFacts facts{{8, 1, 1}, {64, 1, 1}, 0, 16, 1, "declared", {}};
  tuning.add_site(0, site_named("saxpy", wrong == "config" ? 128 : 256), facts);
  if (wrong == "site") tuning.add_site(1, site_named("extra", 256), facts);
  if (wrong == "fallback") tuning.fallback(FallbackReason::NoKnobs, 0, "One config.");
  if (wrong == "collectives") write_collectives(tuning);
  if (wrong == "found") write_found(log);
  TrialEvent trial;
  trial.config = 1;
  trial.launches = 1;
  trial.seconds = 1e-5;
  tuning.trial(trial);
  WinnerEvent winner;
  winner.site = 0;
  winner.config = wrong == "winner" ? 0 : 1;
  winner.seconds = 1e-5 * (1 + 0.01 * rank);
  winner.default_seconds = 2e-5 * (1 + 0.01 * rank);
  tuning.winner(winner);
  if (wrong != "alone") write_agreements(tuning, rank, wrong);
  if (wrong != "killed") log::write_exit(log, 0, true);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int ranks = std::stoi(argv[2]);
  const std::string wrong = argc > 3 ? argv[3] : "";
  for (int rank = 0; rank < ranks; ++rank) {
    const bool last = rank == ranks - 1;
    if (rank == 1 && wrong == "nothing") continue;
    write_rank(argv[1], rank, last || wrong == "alone" || wrong == "collectives" ? wrong : "");
  }
}
