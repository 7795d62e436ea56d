// What it costs that ranks agree on how their collectives are done: a program with one and with
// three all-reduces in its region is tuned, on simnccl or on as many GPUs, by the same binary.
#include <cuda.h>
#include <nccl.h>
#include <nvtx3/nvToolsExt.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <contextune/contextune.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "child.hpp"
#include "log_field.hpp"
#include "rank_meeting.hpp"
#include "settings.hpp"

namespace {

using bench::field;
using bench::number;

constexpr const char* usage =
    "Tunes the all-reduces of a region on several ranks, and tells what agreeing costs.\n"
    "  --mode MODE  body: the region is repeated until it is tuned; live: the program goes on\n"
    "               meanwhile, and waits for each of its steps (body)\n"
    "  --ranks N    processes, a GPU each where there are GPUs (4; tools/bench: fewer on fewer "
    "GPUs)\n"
    "  --rounds N   tunings with one all-reduce, and with three (3)\n"
    "  --steps N    most entries of the region in one live tuning (20000)\n"
    "The first tuning of a process pays for what is opened once, CUPTI and NCCL's connections; so\n"
    "each process tunes another all-reduce before, whose time is shown as well.\n"
    "  --kib N      KiB of the first all-reduce; the others have 4 and 16 times that (4)\n"
    "  --keep DIR   keep the rank logs there\n"
    "Last comes what an entry of the tuned region costs, and a decision of NCCL's in it.\n"
    "  --help\n";

struct Settings {
  std::string mode = "body";
  int ranks = 4;
  int rounds = 3;
  int steps = 20000;
  int kib = 4;
  std::string keep;
  int child = 0;  ///< this process is a rank with so many all-reduces
  std::string meet;
  std::string entries;  ///< file for what entries take afterwards
};

void check(CUresult result, const char* what) {
  if (result != CUDA_SUCCESS) throw std::runtime_error(std::string(what) + " failed");
}
void check(ncclResult_t result, const char* what) {
  if (result != ncclSuccess)
    throw std::runtime_error(std::string(what) + " failed: " + ncclGetErrorString(result));
}
#define CHECK(call) check(call, #call)

constexpr const char* first_region = "first";
constexpr const char* region = "step";

void run_region(const Settings& settings, const char* name, CUstream stream,
                const std::function<void()>& work) {
  if (settings.mode == "body") {
    CONTEXTUAL_AUTOTUNE(name, {.repeatable = true}) {
      work();
    }
    return CHECK(cuStreamSynchronize(stream));
  }
  // Each step waits for its result, as one of a decoder does.
  for (int step = 0; step < settings.steps; ++step) {
    nvtxRangePushA(name);
    work();
    nvtxRangePop();
    CHECK(cuStreamSynchronize(stream));
  }
}

/// Microseconds of one entry of the region that is tuned, without what the program does in it: of
/// so many in a row, several times. To a file, a line for each time.
void time_entries(const Settings& settings, const std::string& file) {
  constexpr int times = 101;
  constexpr int entries = 100;
  std::ofstream costs(file);
  for (int i = 0; i < times; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    for (int entry = 0; entry < entries; ++entry) {
      if (settings.mode == "body") {
        CONTEXTUAL_AUTOTUNE(region, {.repeatable = true}) {}
      } else {
        nvtxRangePushA(region);
        nvtxRangePop();
      }
    }
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    costs << took.count() / entries << '\n';
  }
}

/// One rank.
int run_rank(const Settings& settings) {
  const Place place = place_of_this_process();
  int devices = 0;
  CUdevice device = 0;
  CUcontext context = nullptr;
  CHECK(cuInit(0));
  CHECK(cuDeviceGetCount(&devices));
  CHECK(cuDeviceGet(&device, place.on_this_host % devices));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  const std::size_t elements = static_cast<std::size_t>(settings.kib) * 1024 / sizeof(int);
  CUdeviceptr memory = 0;
  CUstream stream = nullptr;
  CHECK(cuMemAlloc(&memory, 16 * elements * sizeof(int)));
  CHECK(cuMemsetD32(memory, 0, 16 * elements));
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  ncclUniqueId id{};
  ncclComm_t comm = nullptr;
  if (place.rank == 0) CHECK(ncclGetUniqueId(&id));
  share_id(place, settings.meet, id);
  CHECK(ncclCommInitRank(&comm, place.ranks, id, place.rank));
  auto* const data = reinterpret_cast<void*>(memory);
  const auto reduce = [&](std::size_t count) {
    CHECK(ncclAllReduce(data, data, count, ncclInt32, ncclSum, comm, stream));
  };
  run_region(settings, first_region, stream, [&] { reduce(2 * elements); });
  run_region(settings, region, stream, [&] {
    for (int op = 0; op < settings.child; ++op) reduce(elements << (2 * op));
  });
  if (place.rank == 0) time_entries(settings, settings.entries);
  CHECK(ncclCommDestroy(comm));
  return 0;
}

/// What one tuning did, from the logs of all ranks; times in ms.
struct Tuning {
  double first = 0;     ///< the same of the tuning before, in which all is opened
  double wall = 0;      ///< from the first entry to the winners, of the slowest rank
  double waited = 0;    ///< in agreements, of the rank that waited most
  double agreeing = 0;  ///< of that, once all ranks had spoken; of the rank for which it took most
  double longest = 0;   ///< of those waits
  int agreements = 0;
  int refused = 0;  ///< questions that had to be asked again
  int passes = 0;
  int between = 0;  ///< entries that were no pass: an agreement was under way, or timers were
  bool simulated = false;
  std::vector<double> entry_us;  ///< of the tuned region, entered again
  /// Of an agreement: what those entries took, for which the program went on with what was known.
  [[nodiscard]] double each() const {
    return agreements == 0 ? 0 : wall * between / (passes + between) / agreements;
  }
};

void read_log(const std::string& file, Tuning& tuning) {
  std::ifstream log(file);
  double waited = 0;
  double agreeing = 0;
  int agreements = 0;
  int refused = 0;
  bool finished = false;
  for (std::string line; std::getline(log, line) && !finished;) {
    const std::string event = field(line, "event");
    if (field(line, "region") == first_region && event == "stage" &&
        field(line, "stage") == "finished")
      tuning.first = std::max(tuning.first, number(line, "elapsed_us") * 1e-3);
    if (field(line, "region") != region) continue;
    if (event == "sync") {
      ++(field(line, "verdict") == "committed" ? agreements : refused);
      waited += number(line, "wait_us") * 1e-3;
      if (field(line, "verdict") == "committed")
        agreeing += (number(line, "wait_us") - number(line, "others_us")) * 1e-3;
      tuning.longest = std::max(tuning.longest, number(line, "wait_us") * 1e-3);
    } else if (event == "stage" && field(line, "stage") == "finished") {
      tuning.wall = std::max(tuning.wall, number(line, "elapsed_us") * 1e-3);
    } else if (event == "summary" && field(line, "stage") == "finished") {
      finished = true;
      tuning.passes = static_cast<int>(number(line, "passes"));
      tuning.between = static_cast<int>(number(line, "entries")) - tuning.passes;
      tuning.simulated = field(line, "simulated") == "yes";
    }
  }
  if (!finished)
    throw std::runtime_error(file + " tells of no finished tuning; more --steps may help");
  tuning.waited = std::max(tuning.waited, waited);
  tuning.agreeing = std::max(tuning.agreeing, agreeing);
  tuning.agreements = std::max(tuning.agreements, agreements);
  tuning.refused = std::max(tuning.refused, refused);
}

Tuning tune(const Settings& settings, int operations, const std::string& folder) {
  std::filesystem::create_directories(folder);
  const auto log_of = [&](int rank) { return folder + "/rank-" + std::to_string(rank) + ".log"; };
  for (int rank = 0; rank < settings.ranks; ++rank) std::filesystem::remove(log_of(rank));
  const std::string self = bench::this_program();
  const std::string bin = std::filesystem::path(self).parent_path();
  const auto text = [](int value) { return std::to_string(value); };
  std::vector<std::string> command = {bin + "/contextune",
                                      "run",
                                      "-n",
                                      text(settings.ranks),
                                      "--kill-on-failure",
                                      "--auto",
                                      "--region",
                                      std::string("nvtx:") + first_region + ";nvtx:" + region,
                                      "--max-slowdown",
                                      "0",
                                      "--report",
                                      folder + "/report",
                                      "--log-dir",
                                      folder};
  if (settings.mode == "live") command.insert(command.end(), {"--mode", "live"});
  command.insert(command.end(),
                 {"--", self, "--child", text(operations), "--meet", folder + "/meet", "--mode",
                  settings.mode, "--steps", text(settings.steps), "--kib", text(settings.kib),
                  "--entries", folder + "/entries"});
  bench::run_program(command, {"CONTEXTUNE_DISABLE"});
  Tuning tuning;
  for (int rank = 0; rank < settings.ranks; ++rank) read_log(log_of(rank), tuning);
  std::ifstream costs(folder + "/entries");
  for (double us = 0; costs >> us;) tuning.entry_us.push_back(us);
  return tuning;
}

void report_entries(std::vector<double> us) {
  std::sort(us.begin(), us.end());
  const auto at = [&](double part) {
    return us[static_cast<std::size_t>(part * static_cast<double>(us.size() - 1))];
  };
  std::printf(
      "entry of the tuned region, begin and end: %.3f us (%.3f to %.3f, 10th to 90th "
      "percentile; wanted: 200)\n",
      at(0.5), at(0.1), at(0.9));
}

void report(int operations, const std::vector<Tuning>& tunings) {
  for (const Tuning& one : tunings)
    std::printf("%11d %9.1f %9.1f %11d %8d %8d %8d %9.2f %10.2f %12.2f %11.2f\n", operations,
                one.first, one.wall, one.agreements, one.refused, one.passes, one.between,
                one.each(), one.waited, one.agreeing, one.longest);
  const auto most = [&](auto value) {
    double largest = 0;
    for (const Tuning& one : tunings) largest = std::max(largest, value(one));
    return largest;
  };
  std::printf(
      "%11s at most %.1f ms for each all-reduce (wanted: 55); waited %.2f ms, %.2f of "
      "them for nothing but the agreement (wanted: 5)\n\n",
      "", most([&](const Tuning& one) { return one.wall / operations; }),
      most([](const Tuning& one) { return one.waited; }),
      most([](const Tuning& one) { return one.agreeing; }));
}

int run(const Settings& settings) {
  const std::filesystem::path folder = settings.keep.empty()
                                           ? std::filesystem::temp_directory_path() /
                                                 ("contextune-bench-" + std::to_string(getpid()))
                                           : std::filesystem::path(settings.keep);
  std::printf("%11s %9s %9s %11s %8s %8s %8s %9s %10s %12s %11s\n", "all-reduces", "first ms",
              "tuned ms", "agreements", "refused", "passes", "between", "ms each", "waited ms",
              "agreeing ms", "longest ms");
  bool simulated = false;
  std::vector<double> entry_us;
  for (const int operations : {1, 3}) {
    std::vector<Tuning> tunings;
    for (int round = 0; round < settings.rounds; ++round)
      tunings.push_back(tune(settings, operations,
                             folder / (std::to_string(operations) + "-" + std::to_string(round))));
    report(operations, tunings);
    for (const Tuning& one : tunings)
      entry_us.insert(entry_us.end(), one.entry_us.begin(), one.entry_us.end());
    simulated = tunings.front().simulated;
  }
  report_entries(std::move(entry_us));
  std::printf("%d ranks, %s%s\n\n", settings.ranks, settings.mode.c_str(),
              simulated ? " on simulated GPUs: wall time of this host's CPUs, which says little of "
                          "real ones"
                        : "");
  if (settings.keep.empty()) std::filesystem::remove_all(folder);
  std::fflush(stdout);
  const std::filesystem::path bin = std::filesystem::path(bench::this_program()).parent_path();
  bench::run_program({bin / "contextune_bench_collective_decision"}, {});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  try {
    bench::read_settings(argc, argv, usage,
                         {{"--mode", &settings.mode},
                          {"--ranks", &settings.ranks},
                          {"--rounds", &settings.rounds},
                          {"--steps", &settings.steps},
                          {"--kib", &settings.kib},
                          {"--keep", &settings.keep},
                          {"--child", &settings.child},
                          {"--meet", &settings.meet},
                          {"--entries", &settings.entries}});
    if (settings.mode != "body" && settings.mode != "live")
      throw std::runtime_error("--mode is body or live, not '" + settings.mode + "'");
    return settings.child > 0 ? run_rank(settings) : run(settings);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "agreement: %s\n", error.what());
    return 1;
  }
}
