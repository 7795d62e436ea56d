#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <random>
#include <vector>

#include "core/submission/submission_search.hpp"

namespace contextune {

/// A program whose blocks take as long as their submission makes them.
struct SimulatedProgram {
  /// Time of a block over its time as written.
  std::function<double(const Submission&)> ratio = [](const Submission&) { return 1.0; };
  /// How its work changes from block to block.
  std::function<double(std::uint64_t block)> work = [](std::uint64_t) { return 1.0; };
  double block_seconds = 1e-3;
  std::uint64_t blocks = 1000;
  double noise = 0.01;    ///< standard deviation, relative
  double spikes = 0;      ///< share of blocks that are interrupted: half as long again
  double spoiled = 0;     ///< share of blocks that say nothing
  std::uint64_t lag = 4;  ///< blocks from one's end until its time is known
  /// It waits for the GPU after so many blocks; until then no time of them is known. 0: `lag` says.
  std::uint64_t waits_after = 0;
  bool has_only_graphs = false;
  double preparation = 0;     ///< seconds that the caller spends before the first block
  double graphs = 300e-6;     ///< seconds that it spends when a process first gathers in a new way
  int unready = 0;            ///< blocks after that which say nothing: its graphs are being built
  bool says_nothing = false;  ///< no block has a result
  SubmissionChoices choices{true, {8, 16, 32}};
  /// Of kernels that can be chained, the time of a block with it chained over that without.
  std::vector<double> kernels;
  SubmissionLimits limits{.block_seconds = 1e-3};

  [[nodiscard]] double ratio_of(const Submission& submission) const {
    double all = ratio(submission);
    for (std::size_t i = 0; i < kernels.size() && submission.chained; ++i)
      if ((submission.ordinary >> i & 1U) == 0) all *= kernels[i];
    return all;
  }
};

/// One process of it.
struct SimulatedRun {
  SubmissionState state;
  double as_written = 0;  ///< seconds it would have taken, without noise
  double cost = 0;        ///< seconds that it took longer; what was gained is not taken off
  double gained = 0;
  std::uint64_t settled_at = ~std::uint64_t{0};  ///< block
  std::uint64_t kept_at = ~std::uint64_t{0};     ///< block from which on a winner was used
  std::uint64_t tried = 0;                       ///< blocks that were not as written before that

  /// Its cost over what it may cost.
  [[nodiscard]] double share_of_allowance() const { return cost / (0.10 * as_written + 0.050); }
};

inline SimulatedRun run_program(const SimulatedProgram& program, std::uint64_t seed,
                                const SubmissionState& earlier = {}) {
  std::mt19937_64 engine(seed);
  const auto uniform = [&] { return static_cast<double>(engine() >> 11) * 0x1p-53; };
  const auto normal = [&] {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += uniform();
    return sum;
  };
  struct Result {
    std::uint64_t block;
    double seconds;
    bool spoiled;
  };
  SubmissionSearch search(program.choices, program.limits, earlier);
  SimulatedRun run;
  std::vector<std::uint64_t> names;
  for (std::size_t i = 0; i < program.kernels.size(); ++i) names.push_back(1000 + i);
  std::deque<Result> late;
  std::vector<Submission> built;
  std::vector<int> unready;  ///< blocks of each of them
  if (program.has_only_graphs) search.saw_block(false);
  double now = program.preparation;
  search.spend(program.preparation);
  run.cost += program.preparation;
  const auto report = [&] {
    const Result& result = late.front();
    if (result.spoiled) {
      search.spoiled(result.block);
    } else {
      search.measured(result.block, result.seconds, 4);
    }
    late.pop_front();
    if (search.wants_kernels()) search.number_kernels(names);
  };
  for (std::uint64_t block = 0; block < program.blocks; ++block) {
    if (program.waits_after == 0) {
      while (late.size() > program.lag) report();
    } else if (block % program.waits_after == 0) {
      while (!late.empty()) report();
    }
    search.elapsed(now);
    const Submission submission = search.plan(block);
    if (search.settled() && run.settled_at > block) run.settled_at = block;
    if (!search.verdict().winner.is_as_written() && run.kept_at > block) run.kept_at = block;
    if (run.kept_at > block && !submission.is_as_written()) ++run.tried;
    const auto at =
        static_cast<std::size_t>(std::find(built.begin(), built.end(), submission) - built.begin());
    if (submission.gathered != 0 && at == built.size()) {
      built.push_back(submission);
      unready.push_back(program.unready);
      search.spend(program.graphs);
      run.cost += program.graphs;
      now += program.graphs;
    }
    const double plain = program.block_seconds * program.work(block);
    const double seconds = plain * program.ratio_of(submission);
    run.as_written += plain;
    (seconds > plain ? run.cost : run.gained) += std::fabs(seconds - plain);
    const double noise = std::max(0.2, 1 + program.noise * normal());
    const double measured = seconds * noise * (uniform() < program.spikes ? 1.5 : 1);
    now += measured;
    const bool is_unready = submission.gathered != 0 && unready[at]-- > 0;
    late.push_back(
        {block, measured, uniform() < program.spoiled || program.says_nothing || is_unready});
  }
  while (!late.empty()) report();
  run.state = search.state();
  return run;
}

}  // namespace contextune
