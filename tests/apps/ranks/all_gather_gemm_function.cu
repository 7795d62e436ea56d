// The product of all_gather_gemm.cuh in three ways, in one run: as its author would launch it,
// tuned as a function of its plan (tile, blocks and the chunks in which rows travel), and as a
// region in which the launch of its kernel is tuned as all_gather_gemm.lua declares. Then all three
// in turns, and the results of each against the host's.
//   all_gather_gemm_function [--meet PATH] [--rounds N] [--patience SECONDS]
// Ranks find one another by RANK, LOCAL_RANK and WORLD_SIZE, and tune together by their
// communicator. A phase that does not end within its patience ends the process with 3.
#include <unistd.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <thread>

#include <contextune/contextune.hpp>

#include "all_gather_gemm.cuh"
#include "compared.cuh"

contextune::Config describe(const Plan& plan) {
  return {{"tile", std::to_string(plan.tile_rows) + "x" + std::to_string(plan.tile_columns)},
          {"per_sm", std::int64_t{plan.per_sm}},
          {"chunks", std::int64_t{plan.chunks}}};
}

namespace {

constexpr int checked_steps = 16;
constexpr int timed_calls = 50;

/// Copy engines wait for their peers without an end: somebody has to look at the clock.
class Phase {
 public:
  Phase(const Ranks& ranks, const char* what, long patience)
      : watch_([this, rank = ranks.place.rank, what, patience] {
          std::unique_lock lock(mutex_);
          const auto is_over = [this] { return over_; };
          if (changed_.wait_for(lock, std::chrono::seconds(patience), is_over)) return;
          std::fprintf(stderr,
                       "rank %d: %s has not ended in %ld s: a rank is lost, or does another step\n",
                       rank, what, patience);
          _exit(3);
        }) {}
  ~Phase() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_one();
    watch_.join();
  }
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread watch_;
};

std::vector<Plan> plans() {
  std::vector<Plan> all{Plan{}};
  constexpr std::array<std::array<int, 2>, 4> tiles{{{32, 32}, {16, 64}, {32, 64}, {64, 64}}};
  for (const auto& tile : tiles)
    for (const int per_sm : {1, 2, 4})
      for (const int chunks : {1, 2, 4, 8, 16}) {
        const Plan plan{tile[0], tile[1], per_sm, chunks};
        if (!(describe(plan) == describe(all.front()))) all.push_back(plan);
      }
  return all;
}

/// The space file that lies beside the program, unless another one is asked for.
void declare_kernels() {
  const auto beside = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  setenv("CONTEXTUNE_SPACE", (beside / "all_gather_gemm.lua").c_str(), 0);
}

struct Way {
  const char* name;
  std::function<void()> run;
  std::vector<double> seconds{};
  bool right = true;
};

/// Other rows each time, so that a product which does not wait for them is wrong.
bool is_right(const Way& way, AllGatherGemm& work) {
  for (int step = 0; step < checked_steps; ++step) {
    work.next();
    way.run();
    CUDA_CHECK(cudaDeviceSynchronize());
    if (!work.is_right()) return false;
  }
  return true;
}

void print(const std::vector<Way>& ways) {
  const auto spread = [](std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const std::size_t tenth = values.size() / 10;
    return std::array{values[values.size() / 2], values[tenth], values[values.size() - 1 - tenth]};
  };
  for (const Way& way : ways) {
    std::vector<double> ratios;
    for (std::size_t round = 0; round < way.seconds.size(); ++round)
      ratios.push_back(ways.front().seconds[round] / way.seconds[round]);
    const auto time = spread(way.seconds);
    const auto ratio = spread(ratios);
    std::printf(
        "%-12s %7.2f us (%.2f to %.2f), %.3f times as fast as by default (%.3f to %.3f)%s\n",
        way.name, time[0] * 1e6, time[1] * 1e6, time[2] * 1e6, ratio[0], ratio[1], ratio[2],
        way.right ? "" : "  WRONG RESULT");
  }
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  declare_kernels();
  const long patience = option(argc, argv, "--patience", 120L);
  const long rounds = option(argc, argv, "--rounds", 31L);
  const Ranks ranks(argc, argv);
  if (ranks.place.ranks > most_ranks || rounds < 1 || patience < 1) return 2;
  if (!contextune::join(ranks.comm)) {
    std::fprintf(stderr, "rank %d: nothing is tuned with the other ranks: %s\n", ranks.place.rank,
                 contextune_error());
  }
  AllGatherGemm work(ranks);
  work.next();

  auto tuned = contextune::autotune(
      "all_gather_gemm", plans(), nullptr,
      [](const Plan& plan, AllGatherGemm& of) { return of.fits(plan); },
      [](const Plan& plan, AllGatherGemm& of) { return of.multiply(plan); },
      {.repeatable = true, .verbose = ranks.place.rank == 0});
  std::vector<Way> ways;
  ways.push_back({"default", [&] { CUDA_CHECK(work.multiply(Plan{})); }});
  ways.push_back({"by function", [&] { CUDA_CHECK(tuned(work)); }});
  ways.push_back({"by region", [&] {
                    CONTEXTUAL_AUTOTUNE("all_gather_gemm_region", {.repeatable = true}) {
                      CUDA_CHECK(work.multiply(Plan{}));
                    }
                  }});

  bool all_right = true;
  for (Way& way : ways) {
    ranks.meet();
    const Phase phase(ranks, way.name, patience);
    way.run();  // tunes what there is to tune
    way.right = is_right(way, work);
    all_right = all_right && way.right;
  }
  ranks.meet();
  {
    const Phase phase(ranks, "the comparison", patience);
    for (long round = 0; round < rounds; ++round)
      for (std::size_t i = 0; i < ways.size(); ++i) {
        Way& way = ways[(i + static_cast<std::size_t>(round)) % ways.size()];
        way.seconds.push_back(seconds_of(work.stream(), timed_calls, way.run));
      }
  }
  if (ranks.place.rank == 0) print(ways);
  Checksum checksum;
  work.add_to(checksum);
  const int status =
      report("all_gather_gemm_function", ranks, checksum, all_right && work.is_right());
  ranks.meet();  // memory that a peer may still write to must not go
  return status;
}
