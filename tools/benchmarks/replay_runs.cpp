#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "child.hpp"
#include "replay_child.hpp"
#include "replay_region.hpp"
#include "replay_report.hpp"
#include "settings.hpp"

namespace replay_bench {
namespace {

constexpr const char* usage =
    "Tunes a region of two kernels that work in place from nothing: by replay of its only visit, "
    "live\n"
    "over many visits, and by running its body again. Each time in a fresh process, in turns.\n"
    "  --rounds N   tunings of each mode (5)\n"
    "  --mib N      MiB of the state (32; 1 on the simulated driver)\n"
    "  --visits N   of the region by the program that is tuned live (4000)\n"
    "  --keep DIR   keep the rank logs there\n"
    "  --help\n";

// The same for all: every one of these configs computes the same bits. They are far apart, so that
// noise does not decide between two of them.
constexpr const char* space =
    "kernel \"relax\" {\n"
    "  space = { block = { 64, 128, 256, 512 }, per_sm = { 1, 2 } },\n"
    "  apply = function(config, launch)\n"
    "    launch.block.x = config.block\n"
    "    launch.grid.x = config.per_sm * device.num_sms\n"
    "  end,\n"
    "}\n"
    "kernel \"rescale\" {\n"
    "  space = { block = { 128, 512 } },\n"
    "  apply = function(config, launch) launch.block.x = config.block end,\n"
    "}\n";

struct Settings {
  int rounds = 5;
  int mib = 0;
  int visits = 4000;
  std::string keep;
  std::string child;   ///< "marked" or "body": this process is what is tuned
  std::string result;  ///< of such a process
};

Settings read_settings(int argc, char** argv, const Region& region) {
  Settings settings;
  settings.mib = region.usual_mib();
  bench::read_settings(argc, argv, usage,
                       {{"--rounds", &settings.rounds},
                        {"--mib", &settings.mib},
                        {"--visits", &settings.visits},
                        {"--keep", &settings.keep},
                        {"--child", &settings.child},
                        {"--result", &settings.result}});
  return settings;
}

/// Runs this program again, to be tuned in that mode; "bare": without contextune.
Outcome run_child(const std::string& mode, const Settings& settings, const std::string& folder) {
  std::filesystem::create_directories(folder);
  const std::string file = folder + "/space.lua";
  const std::string result = folder + "/result";
  if (!(std::ofstream(file) << space).flush()) throw std::runtime_error("cannot write " + file);
  const std::string self = bench::this_program();
  const std::string contextune =
      std::filesystem::path(self).parent_path().parent_path() / "bin" / "contextune";
  const int visits = mode == "live" ? settings.visits : 1;
  const std::vector<std::string> program = {self,
                                            "--child",
                                            mode == "body" ? "body" : "marked",
                                            "--result",
                                            result,
                                            "--visits",
                                            std::to_string(visits),
                                            "--mib",
                                            std::to_string(settings.mib)};
  if (mode == "bare") {
    bench::run_program(program, {"CONTEXTUNE_DISABLE=1"});
  } else if (mode == "body") {
    bench::run_program(program, {"CONTEXTUNE_DISABLE", "CONTEXTUNE_REGION", "CONTEXTUNE_MODE=body",
                                 "CONTEXTUNE_SPACE=" + file, "CONTEXTUNE_LOG_DIR=" + folder});
  } else {
    std::vector<std::string> command = {
        contextune,   "run",     "--mode", mode,       "--region",
        "nvtx:bench", "--space", file,     "--report", folder + "/report",
        "--log-dir",  folder,    "--"};
    command.insert(command.end(), program.begin(), program.end());
    bench::run_program(command, {"CONTEXTUNE_DISABLE"});
  }
  Outcome outcome;
  std::ifstream in(result);
  if (!(in >> outcome.seconds >> outcome.checksum) || !std::getline(in >> std::ws, outcome.gpu)) {
    throw std::runtime_error("a run gave no result in " + result);
  }
  if (mode == "bare") return outcome;
  outcome.tuning = read_tuning(folder);
  if (mode == "replay" && !outcome.tuning.replayed)
    throw std::runtime_error("the region was not replayed; its log is in " + folder);
  // The first visit of a region that is tuned live is one pass of it.
  if (mode == "live") outcome.seconds = outcome.tuning.seconds;
  return outcome;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%F", std::gmtime(&now));
  return text;
}

int compare_modes(const Settings& settings, bool simulated) {
  const std::string folder = settings.keep.empty()
                                 ? std::filesystem::temp_directory_path() /
                                       ("contextune-bench-" + std::to_string(getpid()))
                                 : std::filesystem::path(settings.keep);
  const Outcome bare = run_child("bare", settings, folder + "/bare");
  std::printf("%s%s, %s, tools/bench replay --rounds %d --mib %d --visits %d\n", bare.gpu.c_str(),
              simulated ? " (SIMULATED)" : "", today().c_str(), settings.rounds, settings.mib,
              settings.visits);
  std::vector<ModeOutcomes> modes = {{"replay", {}}, {"live", {}}, {"body", {}}};
  int wrong = 0;
  for (int round = 0; round < settings.rounds; ++round) {
    for (auto& [mode, outcomes] : modes) {
      outcomes.push_back(
          run_child(mode, settings, folder + "/" + mode + "-" + std::to_string(round)));
      wrong += outcomes.back().checksum == bare.checksum ? 0 : 1;
    }
  }
  report(modes, simulated);
  std::printf("\nstate after the first visit as without contextune: %d of %d\n",
              3 * settings.rounds - wrong, 3 * settings.rounds);
  if (settings.keep.empty()) std::filesystem::remove_all(folder);
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int run(int argc, char** argv, Region& region) {
  try {
    const Settings settings = read_settings(argc, argv, region);
    if (settings.child.empty()) return compare_modes(settings, region.simulated());
    const int rows = settings.mib * (1048576 / 4 / columns);
    return run_as_child(region, {rows, settings.visits, settings.child == "body", settings.result});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "replay: %s\n", error.what());
    return 1;
  }
}

}  // namespace replay_bench
