// Writes the logs of a run of several ranks, as the core does: write_rank_logs FOLDER RANKS [WHAT]
// In it rank R takes R percent longer for the winner than rank 0, and waits R ms for the others.
// WHAT goes wrong on the last rank: "winner", "hash", "verdict" or "gpu"; or rank 1 says
// "nothing".
#include <string>

#include "log/events.hpp"
#include "log/rank_log.hpp"
#include "log/tuning_log.hpp"

using namespace contextune;

namespace {

void write_rank(const std::string& folder, int rank, const std::string& wrong) {
  log::RankLog log({folder, rank, "7f3a", LogLevel::Info});
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
  SiteSpec spec;
  spec.name = "saxpy";
  spec.key = Key{{"n", std::int64_t{1024}}};
  spec.configs = {Config{{"block", std::int64_t{64}}}, Config{{"block", std::int64_t{256}}}};
  tuning.add_site(0, spec, {{8, 1, 1}, {64, 1, 1}, 0, 16, 1, "declared"});
  WinnerEvent winner;
  winner.site = 0;
  winner.config = wrong == "winner" ? 0 : 1;
  winner.seconds = 1e-5 * (1 + 0.01 * rank);
  winner.default_seconds = 2e-5 * (1 + 0.01 * rank);
  tuning.winner(winner);

  SyncEvent sync;
  sync.group = 0x5f00ab;
  sync.group_rank = static_cast<std::uint32_t>(rank);
  sync.wait_seconds = 1e-3 * rank;
  sync.question = 1;
  sync.verdict = Verdict::Aborted;
  sync.why = "rank 1 did not come within 5 s";
  tuning.sync(sync);
  sync.question = 2;
  sync.verdict = wrong == "verdict" ? Verdict::Unknown : Verdict::Committed;
  sync.hash = wrong == "hash" ? 0xbad : 0xfeed;
  tuning.sync(sync);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int ranks = std::stoi(argv[2]);
  const std::string wrong = argc > 3 ? argv[3] : "";
  for (int rank = 0; rank < ranks; ++rank) {
    const bool last = rank == ranks - 1;
    if (rank == 1 && wrong == "nothing") continue;
    write_rank(argv[1], rank, last ? wrong : "");
  }
}
