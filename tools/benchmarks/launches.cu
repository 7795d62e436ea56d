// What chained and gathered launches gain, and what they cost: chains of dependent kernels as
// written, chained, gathered and both, in child processes in alternation. The program itself knows
// nothing of contextune, which is preloaded into the children and told by CONTEXTUNE_FORCE what to
// do.
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "child.hpp"
#include "settings.hpp"

namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* ways[] = {"neither", "chained", "gathered", "both"};
constexpr std::size_t num_ways = std::size(ways);

/// CONTEXTUNE_FORCE for a way; empty: without contextune.
std::string pinned(std::size_t way, int gather) {
  const std::string gathered = "gathered=" + std::to_string(gather);
  const std::string pins[] = {"", "chained", gathered, "chained " + gathered};
  return way == 0 ? "" : "launches=" + pins[way];
}

// Kernels of about 1, 5, 20 and 60 us on an H100.
constexpr int sizes[] = {1 << 16, 1 << 21, 6 << 20, 1 << 24};
constexpr int lengths[] = {1, 4, 16, 64, 512};
/// How the launches of a chain follow each other, in the stream and in a CUDA graph.
enum Arguments { same, few_new, all_new, event_between, in_graph, memset_between, num_arguments };
constexpr const char* argument_names[] = {"the same", "1 of 8 new", "all new"};

bool is_measured(int length, int arguments) {
  switch (arguments) {
    case same:
      return true;
    case event_between:
    case memset_between:
      return length == 64;
    default:
      return length == 16 || length == 64;
  }
}

void check(cudaError_t result) {
  if (result != cudaSuccess) throw std::runtime_error(cudaGetErrorString(result));
}

__global__ void scale(const float* in, float* out, int n, float factor) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    out[i] = in[i] * factor;
}

__global__ void shift(const float* in, float* out, int n, float factor, float by) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    out[i] = in[i] * factor + by;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double microseconds(Clock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

struct Figures {
  double chain_us = 0;   // until the host has waited for the last kernel
  double launch_us = 0;  // of the host's loop, for each launch
};
/// Size, length and arguments.
using Cell = std::tuple<int, int, int>;
using Table = std::map<Cell, Figures>;

/// A child's part: measures every cell.
class Chains {
 public:
  Chains() {
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
    for (float*& buffer : buffers_) {
      check(cudaMalloc(&buffer, sizes[3] * sizeof(float)));
      check(cudaMemset(buffer, 0, sizes[3] * sizeof(float)));
    }
    check(cudaMalloc(&small_, sizeof *small_));
    // None may be loaded during a capture.
    scale<<<1, 32, 0, stream_>>>(buffers_[0], buffers_[1], 1, 1.0F);
    shift<<<1, 32, 0, stream_>>>(buffers_[0], buffers_[1], 1, 1.0F, 1.0F);
    check(cudaStreamSynchronize(stream_));
  }

  Figures measure(int size, int length, int arguments, int cell_ms) {
    std::vector<double> chains, loops;
    constexpr int warm_ups = 4;  // graphs are built meanwhile, on another thread
    const auto warm_until = Clock::now() + std::chrono::milliseconds(5);
    for (int i = 0; i < warm_ups || Clock::now() < warm_until; ++i)
      (void)run(size, length, arguments);
    const auto deadline = Clock::now() + std::chrono::milliseconds(cell_ms);
    while (chains.size() < 5 || Clock::now() < deadline) {
      const Figures one = run(size, length, arguments);
      chains.push_back(one.chain_us);
      loops.push_back(one.launch_us);
    }
    return {median(chains), median(loops)};
  }

 private:
  Figures run(int size, int length, int arguments) {
    const bool is_graph = arguments == in_graph || arguments == memset_between;
    cudaGraphExec_t graph = is_graph ? graph_of(size, length, arguments) : nullptr;
    const auto start = Clock::now();
    if (is_graph) {
      check(cudaGraphLaunch(graph, stream_));
    } else {
      launch(size, length, arguments);
    }
    const auto launched = Clock::now();
    check(cudaStreamSynchronize(stream_));
    const auto end = Clock::now();
    check(cudaGetLastError());
    return {microseconds(end - start), microseconds(launched - start) / length};
  }

  cudaGraphExec_t graph_of(int size, int length, int arguments) {
    cudaGraphExec_t& exec = graphs_[{size, length, arguments}];
    if (exec != nullptr) return exec;
    cudaGraph_t graph = nullptr;
    check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
    launch(size, length, arguments);
    check(cudaStreamEndCapture(stream_, &graph));
    check(cudaGraphInstantiate(&exec, graph, 0));
    check(cudaGraphDestroy(graph));
    return exec;
  }

  void launch(int size, int length, int arguments) {
    const int blocks = std::min(size / 256, 2112);
    for (int i = 0; i < length; ++i) {
      const bool is_new = arguments == all_new || (arguments == few_new && i % 8 == 3);
      const float factor = is_new ? 1.0F / static_cast<float>(++count_ % 100000 + 1) : 0.5F;
      const float* in = buffers_[static_cast<std::size_t>(i % 2)];
      float* out = buffers_[static_cast<std::size_t>(1 - i % 2)];
      if (i % 4 < 2) {
        scale<<<blocks, 256, 0, stream_>>>(in, out, size, factor);
      } else {
        shift<<<blocks, 256, 0, stream_>>>(in, out, size, factor, 1.0F);
      }
      if (arguments == event_between) check(cudaEventRecord(event_, stream_));
      if (arguments == memset_between) check(cudaMemsetAsync(small_, 0, sizeof *small_, stream_));
    }
  }

  cudaStream_t stream_ = nullptr;
  cudaEvent_t event_ = nullptr;
  std::array<float*, 2> buffers_{};
  float* small_ = nullptr;
  std::map<Cell, cudaGraphExec_t> graphs_;
  unsigned count_ = 0;
};

int run_as_child(const std::string& result, int cell_ms) {
  const bool wants_core = std::getenv("CONTEXTUNE_FORCE") != nullptr;
  Chains chains;
  const bool core = dlopen("libcontextune.so", RTLD_NOLOAD | RTLD_LAZY) != nullptr;
  if (wants_core != core) {
    throw std::runtime_error(core
                                 ? "contextune is loaded where it should not be"
                                 : "libcontextune.so is not beside the frontend, or did not start");
  }
  std::ofstream out(result);
  for (const int size : sizes) {
    for (const int length : lengths) {
      for (int arguments = 0; arguments < num_arguments; ++arguments) {
        if (!is_measured(length, arguments)) continue;
        const Figures figures = chains.measure(size, length, arguments, cell_ms);
        out << size << ' ' << length << ' ' << arguments << ' ' << figures.chain_us << ' '
            << figures.launch_us << '\n';
      }
    }
  }
  return out.flush() ? 0 : 1;
}

Table read_table(const std::string& file) {
  Table table;
  std::ifstream in(file);
  int size = 0, length = 0, arguments = 0;
  Figures figures;
  while (in >> size >> length >> arguments >> figures.chain_us >> figures.launch_us) {
    table[{size, length, arguments}] = figures;
  }
  return table;
}

/// A folder of its own for a child, gone afterwards.
class Scratch {
 public:
  Scratch() : folder_(std::filesystem::temp_directory_path() / "contextune-launches-XXXXXX") {
    if (mkdtemp(folder_.data()) == nullptr) throw std::runtime_error("no temporary folder");
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  [[nodiscard]] const std::string& folder() const { return folder_; }
  [[nodiscard]] std::string result() const { return folder_ + "/result"; }

 private:
  std::string folder_;
};

/// What the child's log says of how its launches went.
std::string totals(const std::string& folder) {
  std::ifstream log(folder + "/rank-0.log");
  for (std::string line; std::getline(log, line);) {
    if (line.find(" event=submission ") == std::string::npos) continue;
    std::string text;
    for (const char* name :
         {" kernels=", " chained=", " held=", " batches=", " late=", " in_graphs=", " graphs="}) {
      const std::size_t at = line.find(name);
      if (at == std::string::npos) continue;
      text += line.substr(at, line.find(' ', at + 1) - at);
    }
    return text;
  }
  throw std::runtime_error("the log does not say how many launches were chained or gathered");
}

using Rounds = std::array<std::vector<Table>, num_ways>;

/// "median (least-most)" over the rounds.
template <class Figure>
std::string over(std::size_t rounds, int digits, Figure figure) {
  std::vector<double> values;
  for (std::size_t round = 0; round < rounds; ++round) values.push_back(figure(round));
  std::sort(values.begin(), values.end());
  char text[96];
  std::snprintf(text, sizeof text, "%.*f (%.*f-%.*f)", digits, values[values.size() / 2], digits,
                values.front(), digits, values.back());
  return text;
}

void print_chains(const Rounds& rounds) {
  const std::size_t count = rounds[0].size();
  std::printf("\nChains of K kernels in a stream, then a wait of the host: neither / way\n");
  std::printf("%-9s %4s %-11s %-26s %-18s %-18s %-18s\n", "floats", "K", "arguments",
              "neither, us a chain", "chained", "gathered", "both");
  for (const auto& [cell, unused] : rounds[0][0]) {
    const auto [size, length, arguments] = cell;
    if (arguments > all_new) continue;
    const Cell key = cell;
    std::printf(
        "%-9d %4d %-11s %-26s", size, length, argument_names[arguments],
        over(count, 1, [&](std::size_t r) { return rounds[0][r].at(key).chain_us; }).c_str());
    for (std::size_t way = 1; way < num_ways; ++way) {
      std::printf(" %-18s", over(count, 2, [&](std::size_t r) {
                              return rounds[0][r].at(key).chain_us /
                                     rounds[way][r].at(key).chain_us;
                            }).c_str());
    }
    std::printf("\n");
  }
}

void print_host(const Rounds& rounds) {
  std::printf("\nWhat a launch takes the host, in us, in chains of 64 of the shortest kernels\n");
  std::printf("%-18s %-20s %-20s %-20s %-20s\n", "arguments", "neither", "chained", "gathered",
              "both");
  for (const int arguments : {same, few_new, all_new}) {
    std::printf("%-18s", argument_names[arguments]);
    for (const std::vector<Table>& tables : rounds) {
      std::printf(" %-20s", over(tables.size(), 2, [&](std::size_t r) {
                              return tables[r].at({sizes[0], 64, arguments}).launch_us;
                            }).c_str());
    }
    std::printf("\n");
  }
}

/// Rows of one size each.
void print_against_chained(const Rounds& rounds, int length, int arguments) {
  std::printf("%-9s %4s %-26s %-18s\n", "floats", "K", "neither, us a chain", "chained");
  for (const int size : sizes) {
    const Cell key = {size, length, arguments};
    std::printf(
        "%-9d %4d %-26s %-18s\n", size, length,
        over(rounds[0].size(), 1, [&](std::size_t r) { return rounds[0][r].at(key).chain_us; })
            .c_str(),
        over(rounds[0].size(), 3, [&](std::size_t r) {
          return rounds[0][r].at(key).chain_us / rounds[1][r].at(key).chain_us;
        }).c_str());
  }
}

void print_graphs(const Rounds& rounds) {
  std::printf("\nThe same as a CUDA graph, which was captured: neither / way\n");
  for (const int length : {16, 64}) print_against_chained(rounds, length, in_graph);
}

void print_unchained(const Rounds& rounds) {
  std::printf(
      "\nWaiting kernels that are not chained: neither / way\n"
      "in the stream, an event before each\n");
  print_against_chained(rounds, 64, event_between);
  std::printf("as a CUDA graph, a memset of four bytes before each\n");
  print_against_chained(rounds, 64, memset_between);
}

constexpr const char* usage =
    "usage: launches [--rounds N] [--cell-ms N] [--gather 8|16|32]\n"
    "                [--frontend libcontextune_preload.so]\n"
    "Chains of dependent kernels as written, chained, gathered by 16 (or --gather), and both: N "
    "times\n"
    "a process of each in alternation; every cell is the median of the chains of N ms. Ratios are "
    "within\n"
    "a round;\n"
    "in parentheses the least and the most of the rounds.\n";

int run_all(int argc, char** argv) {
  const std::string program = bench::this_program();
  std::string frontend =
      std::filesystem::path(program).parent_path().parent_path() / "lib/libcontextune_preload.so";
  int num_rounds = 4;
  int cell_ms = 12;
  int gather = 16;
  bench::read_settings(argc, argv, usage,
                       {{"--rounds", &num_rounds},
                        {"--cell-ms", &cell_ms},
                        {"--gather", &gather},
                        {"--frontend", &frontend}});
  if (!std::filesystem::exists(frontend)) {
    throw std::runtime_error(frontend +
                             " does not exist: build contextune_preload and "
                             "contextune_shared, or say --frontend FILE");
  }
  frontend = std::filesystem::absolute(frontend);
  Rounds rounds;
  std::array<std::string, num_ways> last_totals;
  for (int round = 0; round < num_rounds; ++round) {
    for (std::size_t i = 0; i < num_ways; ++i) {
      // Another one first in each round.
      const std::size_t which = (i + static_cast<std::size_t>(round)) % num_ways;
      const Scratch scratch;
      std::vector<std::string> settings = {"LD_PRELOAD", "CONTEXTUNE_FORCE", "CONTEXTUNE_REGION"};
      if (which != 0) {
        settings = {"LD_PRELOAD=" + frontend, "CONTEXTUNE_FORCE=" + pinned(which, gather),
                    "CONTEXTUNE_LOG_DIR=" + scratch.folder(), "CONTEXTUNE_REGION"};
      }
      bench::run_program({program, "--measure", scratch.result(), std::to_string(cell_ms)},
                         settings);
      rounds[which].push_back(read_table(scratch.result()));
      if (which != 0) last_totals[which] = totals(scratch.folder());
    }
  }
  std::printf("%d rounds of four processes, gathered by %d; every cell the median of %d ms\n",
              num_rounds, gather, cell_ms);
  for (std::size_t which = 1; which < num_ways; ++which) {
    std::printf("%-9s the last process:%s\n", ways[which], last_totals[which].c_str());
  }
  print_chains(rounds);
  print_graphs(rounds);
  print_host(rounds);
  print_unchained(rounds);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 4 && std::strcmp(argv[1], "--measure") == 0) {
      return run_as_child(argv[2], std::atoi(argv[3]));
    }
    return run_all(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "launches: %s\n", error.what());
    return 1;
  }
}
