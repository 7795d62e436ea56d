#include <algorithm>
#include <cmath>
#include <string>

#include "catch.hpp"
#include "simulated_program.hpp"

using namespace contextune;

namespace {

/// A program of any kind: what helps or harms it, how it changes, how well it can be measured.
SimulatedProgram drawn_program(std::uint64_t seed) {
  std::mt19937_64 engine(7919 * seed + 13);
  const auto uniform = [&] { return static_cast<double>(engine() >> 11) * 0x1p-53; };
  const auto between = [&](double low, double high) {
    return std::exp(std::log(low) + uniform() * std::log(high / low));
  };
  const auto effect = [&](double low, double high) {
    return uniform() < 0.3 ? between(0.99, 1.01) : between(low, high);
  };
  const double chained = effect(0.7, 1.25);
  const bool spins = uniform() < 0.05;
  const double gathered = spins ? between(4, 15) : effect(0.35, 1.4);
  const double both = chained * gathered * between(0.95, 1.05);
  const double eight = between(0.92, 1.08);
  const double thirty_two = between(0.92, 1.08);

  SimulatedProgram program;
  program.ratio = [=](const Submission& submission) {
    if (submission.gathered == 0) return submission.chained ? chained : 1;
    const double size = submission.gathered == 8    ? eight
                        : submission.gathered == 32 ? thirty_two
                                                    : 1;
    return size * (submission.chained ? both : gathered);
  };
  program.noise = between(0.003, 0.04);
  program.lag = static_cast<std::uint64_t>(20 * uniform() * uniform());
  program.spikes = uniform() < 0.5 ? 0 : 0.03 * uniform();
  program.spoiled = uniform() < 0.5 ? 0 : 0.1 * uniform();
  program.blocks = static_cast<std::uint64_t>(between(60, 1200));
  program.preparation = 0.02 * uniform();
  if (uniform() < 0.5) {
    for (int kernels = static_cast<int>(between(2, 12)); kernels > 0; --kernels)
      program.kernels.push_back(between(0.93, 1.07));
  }
  const double end = static_cast<double>(program.blocks);
  const double depth = 0.3 * uniform();
  switch (static_cast<int>(5 * uniform())) {
    case 0:
      program.work = [=](std::uint64_t block) {
        return 0.02 + std::pow(1 - static_cast<double>(block) / end, 2);
      };
      break;
    case 1:
      program.work = [=](std::uint64_t block) {
        return 0.3 + 2 * static_cast<double>(block) / end;
      };
      break;
    case 2:
      program.work = [](std::uint64_t block) { return block % 2 == 0 ? 0.8 : 1.3; };
      break;
    case 3:
      program.work = [=](std::uint64_t block) {
        return 1 + depth * std::sin(static_cast<double>(block) / 10);
      };
      break;
    default:
      break;
  }
  return program;
}

double best_gain(const SimulatedProgram& program) {
  double best = 0;
  for (const bool chained : {false, true})
    for (const std::uint32_t gathered : {0U, 8U, 16U, 32U})
      best = std::max(best, 1 - program.ratio_of({chained, gathered}));
  return best;
}

/// @param unready blocks that say nothing, while graphs are being built
SimulatedProgram program_of_few_blocks(int blocks, int unready) {
  SimulatedProgram program;
  program.blocks = static_cast<std::uint64_t>(blocks);
  program.block_seconds = 100e-6;
  program.graphs = 150e-6;
  program.lag = 1;
  program.unready = unready;
  return program;
}

}  // namespace

TEST_CASE(
    "Over drawn programs no loss is kept, few gains are missed, and no process costs too much",
    "[submission]") {
  int gains = 0;
  int found = 0;
  int well_found = 0;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    const SimulatedProgram program = drawn_program(seed);
    SubmissionState state;
    for (std::uint64_t run = 0; run < 5 && !state.verdict.settled; ++run) {
      const SimulatedRun result = run_program(program, 100 * seed + run, state);
      state = result.state;
      INFO("seed " << seed << ", run " << run);
      CHECK(result.share_of_allowance() < 1);
    }
    const double kept = 1 - program.ratio_of(state.verdict.winner);
    INFO("seed " << seed << ": " << text_of(state.verdict.winner));
    CHECK(state.verdict.settled);
    CHECK(kept > -0.01);
    const double best = best_gain(program);
    if (best < 0.05) continue;
    ++gains;
    found += kept > 0.01;
    well_found += kept > best / 2;
  }
  INFO(found << " and " << well_found << " of " << gains);
  CHECK(found >= 0.97 * gains);
  CHECK(well_found >= 0.95 * gains);
}

namespace {

struct Shape {
  const char* name;
  double chained, gathered, both;  ///< times as fast as written
  double noise;
  std::uint64_t lag;
  double blocks;  ///< until it is settled, at most in nine of ten
};

}  // namespace

// Speedups as measured on an H100; blocks of 1 ms.
TEST_CASE("Programs like those that were measured are settled within a tenth of a second or two",
          "[submission]") {
  for (const Shape& shape : {Shape{"host-bound chain", 1.10, 2.60, 3.10, 0.02, 2, 80},
                             Shape{"GPU-bound chain", 1.31, 1.31, 1.37, 0.007, 6, 120},
                             Shape{"GPU-bound, gathered harms", 1.21, 0.98, 1.13, 0.01, 6, 60},
                             Shape{"nothing helps", 1.00, 0.99, 1.00, 0.02, 1, 150},
                             Shape{"everything harms a little", 0.98, 0.97, 0.98, 0.02, 1, 80},
                             Shape{"decode graph", 1.07, 1.00, 1.07, 0.005, 2, 150}}) {
    std::vector<double> blocks;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      SimulatedProgram program;
      program.ratio = [&](const Submission& submission) {
        if (submission.gathered == 0) return submission.chained ? 1 / shape.chained : 1;
        return 1 / (submission.chained ? shape.both : shape.gathered);
      };
      program.noise = shape.noise;
      program.lag = shape.lag;
      program.preparation = 0.01;
      blocks.push_back(static_cast<double>(run_program(program, seed).settled_at));
    }
    std::sort(blocks.begin(), blocks.end());
    INFO(shape.name << ": " << blocks[20] << " blocks, nine of ten " << blocks[36]);
    CHECK(blocks[36] <= shape.blocks);
  }
}

// A decode step as a graph, of which 200 are launched ahead: the host waits after every hundred
// blocks.
TEST_CASE("A program of graphs that it launches far ahead is settled in its first run",
          "[submission]") {
  for (const double chained : {0.955, 1.02}) {
    int settled = 0;
    int chains = 0;
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
      SimulatedProgram program;
      program.has_only_graphs = true;
      program.waits_after = 100;
      program.block_seconds = 1.76e-3;
      program.preparation = 0.02;
      program.noise = 0.003;
      program.kernels.assign(8, 1.0);
      program.ratio = [&](const Submission& submission) {
        return submission.chained ? chained : 1.0;
      };
      const SimulatedRun run = run_program(program, seed);
      CHECK(run.share_of_allowance() < 1);
      settled += run.state.verdict.settled;
      chains += run.state.verdict.winner.chained;
      for (const ScreenedSubmission& one : run.state.screened) CHECK(one.submission.gathered == 0);
    }
    INFO("chained " << chained << ": " << settled << " settled, " << chains << " chained");
    CHECK(settled >= 95);
    CHECK(chains == (chained < 1 ? 100 : 0));
  }
}

TEST_CASE("A run whose loads took most of what it may cost still finds what chaining gains",
          "[submission]") {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SimulatedProgram program;
    program.has_only_graphs = true;
    program.waits_after = 200;
    program.blocks = 800;
    program.block_seconds = 2.3e-3;
    program.noise = 0.003;
    program.ratio = [](const Submission& submission) { return submission.chained ? 0.963 : 1.0; };
    SubmissionState earlier;
    earlier.choices = program.choices;
    earlier.runs = 1;
    earlier.block_seconds = program.block_seconds;
    earlier.run_seconds = 4;
    program.preparation = 0.9 * (0.050 + 0.10 * earlier.run_seconds / 2);
    const SimulatedRun run = run_program(program, seed, earlier);
    CHECK(run.state.verdict.settled);
    CHECK(run.state.verdict.winner.chained);
    CHECK(run.cost < 0.050 + 0.10 * earlier.run_seconds / 2);
  }
}

TEST_CASE("Over its runs, a program of few short blocks gets a clear gain, and none that is none",
          "[submission]") {
  constexpr int programs = 400;
  for (const int blocks : {8, 12}) {
    for (const int unready : {0, 1, 2}) {
      for (const double gathered : {1 / 1.3, 1.0}) {
        int kept = 0;
        for (std::uint64_t seed = 1; seed <= programs; ++seed) {
          SimulatedProgram program = program_of_few_blocks(blocks, unready);
          program.ratio = [&](const Submission& submission) {
            return submission.gathered == 0 ? 1 : gathered;
          };
          program.noise = 0.05;
          SubmissionState state;
          for (std::uint64_t run = 0; run < 5; ++run) {
            const SimulatedRun result = run_program(program, 100 * seed + run, state);
            state = result.state;
            REQUIRE(result.share_of_allowance() < 1);
          }
          REQUIRE(state.verdict.settled);
          kept += !state.verdict.winner.is_as_written();
        }
        INFO(blocks << " blocks, " << unready << " unready, ratio " << gathered << ": " << kept);
        if (gathered < 1) {
          CHECK(kept >= 0.95 * programs);
        } else {
          CHECK(kept <= 0.05 * programs);
        }
      }
    }
  }
}

TEST_CASE("A program of few short blocks that gains by chaining alone is chained", "[submission]") {
  for (const int unready : {0, 1, 2}) {
    int chained = 0;
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
      SimulatedProgram program = program_of_few_blocks(8, unready);
      program.ratio = [](const Submission& submission) { return submission.chained ? 0.9 : 1; };
      program.noise = 0.02;
      SubmissionState state;
      for (std::uint64_t run = 0; run < 5; ++run)
        state = run_program(program, 100 * seed + run, state).state;
      chained += state.verdict.winner == Submission{true, 0};
    }
    INFO(unready << " unready: " << chained);
    CHECK(chained >= 95);
  }
}

TEST_CASE("Equal submissions stay as written in 95 % of noisy programs, however many are compared",
          "[submission]") {
  int kept = 0;
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    SimulatedProgram program;
    program.noise = 0.05;
    kept += !run_program(program, seed).state.verdict.winner.is_as_written();
  }
  CHECK(kept <= 30);
}

TEST_CASE("Work that grows, shrinks or alternates is not taken for a gain", "[submission]") {
  const std::vector<std::function<double(std::uint64_t)>> works{
      [](std::uint64_t block) { return std::pow(1 - static_cast<double>(block) / 1000, 2); },
      [](std::uint64_t block) { return 0.1 + static_cast<double>(block) / 100; },
      [](std::uint64_t block) { return block % 2 == 0 ? 1.5 : 0.7; },
      [](std::uint64_t block) { return block % 8 < 4 ? 1.5 : 0.7; },
      [](std::uint64_t block) { return 1 + 0.5 * std::sin(static_cast<double>(block) / 7); }};
  for (std::size_t i = 0; i < works.size(); ++i) {
    int kept = 0;
    int found = 0;
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
      SimulatedProgram program;
      program.work = works[i];
      kept += !run_program(program, seed).state.verdict.winner.is_as_written();
      program.ratio = [](const Submission& submission) { return submission.chained ? 0.88 : 1; };
      found += run_program(program, seed).state.verdict.winner.chained;
    }
    INFO("work " << i);
    CHECK(kept <= 4);
    CHECK(found >= 47);
  }
}
