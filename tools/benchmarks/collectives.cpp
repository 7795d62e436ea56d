// The program of the collectives benchmark: one of several processes that run AllReduce, AllGather
// and ReduceScatter at many sizes, each in an NVTX range of its own, and time them. It knows
// nothing of contextune. With --mode by-hand it tries all that NCCL can be told by itself.
#include <cuda.h>
#include <nccl.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "collective_rotation.hpp"
#include "collective_work.hpp"
#include "rank_meeting.hpp"
#include "settings.hpp"

namespace collective_bench {
namespace {

constexpr const char* usage =
    "One rank of the collectives benchmark; tools/bench collectives starts all of them.\n"
    "Rank and number of ranks are those of torchrun (RANK, WORLD_SIZE), Open MPI or Slurm.\n"
    "  --sizes LIST        bytes, such as 4K,1M (4K to 256M in steps of 4 times)\n"
    "  --type TYPE         int32, or float32\n"
    "  --mode MODE         run: each collective as NCCL runs it; by-hand: with every config, too\n"
    "  --tune-iterations N entries of each range before its times are taken, in fifties (50)\n"
    "  --settle-seconds N  for which they go on at least (as long as they take)\n"
    "  --tune-seconds N    for which they may go on at most (5)\n"
    "  --rounds N          blocks of which the median is taken (20)\n"
    "  --block-us N        about how long each of them is (3000)\n"
    "  --cpus-per-rank N   rank r runs on the CPUs from r * N on, N of them (where the system\n"
    "                      puts it)\n"
    "  --meet PATH         a Unix socket, by which rank 0 gives the others NCCL's id\n"
    "  --help\n";

struct Settings {
  std::string sizes = "4K,16K,64K,256K,1M,4M,16M,64M,256M";
  std::string type = "int32";
  std::string mode = "run";
  int tune_iterations = 50;
  int settle_seconds = 0;
  int tune_seconds = 5;
  int rounds = 20;
  int block_us = 3000;
  int cpus_per_rank = 0;
  std::string meet;
};

std::size_t bytes_of(const std::string& text) {
  char* end = nullptr;
  auto bytes = std::strtoull(text.c_str(), &end, 10);
  const std::string unit = end;
  if (unit == "K" || unit == "M") bytes <<= unit == "K" ? 10U : 20U;
  if (text.empty() || (!unit.empty() && unit != "K" && unit != "M") || bytes < 4096 ||
      bytes > (std::size_t{1} << 30U))
    throw std::runtime_error("'" + text + "' is not a size from 4K to 1024M");
  return bytes;
}

std::vector<Problem> problems_of(const std::string& sizes) {
  std::vector<Problem> problems;
  for (const auto& [function, name] :
       {std::pair{Function::AllReduce, "all_reduce"}, std::pair{Function::AllGather, "all_gather"},
        std::pair{Function::ReduceScatter, "reduce_scatter"}}) {
    for (std::size_t begin = 0; begin <= sizes.size();) {
      const std::size_t end = std::min(sizes.find(',', begin), sizes.size());
      const std::size_t bytes = bytes_of(sizes.substr(begin, end - begin));
      problems.push_back({function, bytes, name + ("-" + std::to_string(bytes))});
      begin = end + 1;
    }
  }
  return problems;
}

/// What a program does with a range before anybody times it: it enters it again and again, and
/// uses the result each time. @return elements that were not as they should be
std::size_t iterate(CollectiveWork& work, const Problem& problem, const Settings& settings) {
  constexpr int between_agreements = 50;
  const auto begin = std::chrono::steady_clock::now();
  std::size_t wrong = 0;
  for (int i = 0;; ++i) {
    const auto number = static_cast<std::size_t>(i);
    work.clear(problem, number);
    work.enter(problem);
    work.wait();
    wrong += work.wrong(problem, number);
    if (i % between_agreements != between_agreements - 1) continue;
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    const double seconds = work.largest(elapsed.count());
    const bool is_enough = i + 1 >= settings.tune_iterations && seconds >= settings.settle_seconds;
    if (is_enough || seconds > settings.tune_seconds) break;
  }
  return wrong;
}

std::string text_of(const Spread& spread, const char* format) {
  char text[96];
  std::snprintf(text, sizeof text, format, spread.median, spread.least, spread.most);
  return text;
}

/// @return whether all results were as they should be
bool run(const Problem& problem, const Settings& settings, const Place& place,
         CollectiveWork& work) {
  constexpr const char* us = "%.3f us (%.3f to %.3f)";
  const Blocks blocks = {settings.rounds, double(settings.block_us)};
  const auto begin = std::chrono::steady_clock::now();
  std::size_t wrong = iterate(work, problem, settings);
  std::string line = problem.name;
  if (settings.mode == "by-hand") {
    const Rotation rotation = rotate(work, problem, blocks);
    line += ": default " + text_of(rotation.default_us, us) + " " + rotation.default_cell +
            ", best " + text_of(rotation.best_us, us) + " " + hand_tuner::name_of(rotation.best) +
            ", gain " + text_of(rotation.gain, "%.4f (%.4f to %.4f)") + ", " +
            std::to_string(rotation.configs) + " configs";
  } else {
    line += ": " + text_of(time_blocks(work, problem, blocks), us);
  }
  wrong += work.wrong(problem);
  wrong = static_cast<std::size_t>(work.largest(static_cast<double>(wrong)));
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  if (place.rank == 0) {
    std::printf("%s, %.1f s, %s\n", line.c_str(), elapsed.count(),
                wrong == 0 ? "PASS" : ("MISMATCH of " + std::to_string(wrong)).c_str());
    std::fflush(stdout);
  }
  return wrong == 0;
}

/// Before the threads that this process will have, which are where it is.
void stay_on_cpus(int rank, int cpus) {
  if (cpus <= 0) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  const auto first = static_cast<std::size_t>(rank * cpus);
  for (std::size_t cpu = first; cpu < first + static_cast<std::size_t>(cpus); ++cpu)
    CPU_SET(cpu, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0)
    throw std::runtime_error("--cpus-per-rank: there are not so many CPUs");
}

int main_of(int argc, char** argv) {
  Settings settings;
  bench::read_settings(argc, argv, usage,
                       {{"--sizes", &settings.sizes},
                        {"--type", &settings.type},
                        {"--mode", &settings.mode},
                        {"--tune-iterations", &settings.tune_iterations},
                        {"--settle-seconds", &settings.settle_seconds},
                        {"--tune-seconds", &settings.tune_seconds},
                        {"--rounds", &settings.rounds},
                        {"--block-us", &settings.block_us},
                        {"--cpus-per-rank", &settings.cpus_per_rank},
                        {"--meet", &settings.meet}});
  const std::vector<Problem> problems = problems_of(settings.sizes);
  if (settings.type != "int32" && settings.type != "float32")
    throw std::runtime_error("--type is int32 or float32");
  if (settings.mode != "run" && settings.mode != "by-hand")
    throw std::runtime_error("--mode is run or by-hand");
  if (settings.mode == "by-hand") setenv("NCCL_TUNER_PLUGIN", "STATIC_PLUGIN", 1);

  const Place place = place_of_this_process();
  stay_on_cpus(place.rank, settings.cpus_per_rank);
  check(cuInit(0), "cuInit");
  int devices = 0;
  check(cuDeviceGetCount(&devices), "cuDeviceGetCount");
  CUdevice device = 0;
  check(cuDeviceGet(&device, place.on_this_host % devices), "cuDeviceGet");
  CUcontext context = nullptr;
  check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  ncclUniqueId id{};
  if (place.rank == 0) check(ncclGetUniqueId(&id), "ncclGetUniqueId");
  share_id(place, settings.meet, id);
  ncclComm_t comm = nullptr;
  check(ncclCommInitRank(&comm, place.ranks, id, place.rank), "ncclCommInitRank");
  if (place.rank == 0) {
    char name[96] = "";
    int version = 0;
    check(cuDeviceGetName(name, sizeof name, device), "cuDeviceGetName");
    check(ncclGetVersion(&version), "ncclGetVersion");
    std::printf("%d ranks, %s, NCCL %d, %s\n", place.ranks, name, version, settings.type.c_str());
    std::fflush(stdout);
  }
  std::size_t most_bytes = 0;
  for (const Problem& problem : problems) most_bytes = std::max(most_bytes, problem.bytes);
  CollectiveWork work(place, comm, most_bytes, settings.type == "float32");
  bool all_right = true;
  for (const Problem& problem : problems)
    all_right = run(problem, settings, place, work) && all_right;
  check(ncclCommDestroy(comm), "ncclCommDestroy");
  return all_right ? 0 : 1;
}

}  // namespace
}  // namespace collective_bench

int main(int argc, char** argv) {
  try {
    return collective_bench::main_of(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "collectives: %s\n", error.what());
    return 2;
  }
}
