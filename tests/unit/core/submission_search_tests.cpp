#include "core/submission/submission_search.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "catch.hpp"
#include "simulated_program.hpp"

using namespace contextune;

namespace {

/// Launches that gain by both in turn.
SimulatedProgram gaining_program() {
  SimulatedProgram program;
  program.ratio = [](const Submission& submission) {
    return (submission.chained ? 0.9 : 1) * (submission.gathered != 0 ? 0.8 : 1);
  };
  return program;
}

/// Runs processes of it until it is settled.
struct SeveralRuns {
  SubmissionState state;
  int runs = 0;
  double worst_share = 0;  ///< of what a process may cost
};
SeveralRuns run_until_settled(const SimulatedProgram& program, std::uint64_t seed) {
  SeveralRuns several;
  while (!several.state.verdict.settled && several.runs < 20) {
    const SimulatedRun run =
        run_program(program, 100 * seed + static_cast<std::uint64_t>(several.runs), several.state);
    several.state = run.state;
    several.worst_share = std::max(several.worst_share, run.share_of_allowance());
    ++several.runs;
  }
  return several;
}

}  // namespace

TEST_CASE("A program that gains by both is settled with both", "[submission]") {
  const SimulatedRun run = run_program(gaining_program(), 1);
  const SubmissionVerdict& verdict = run.state.verdict;
  CHECK(verdict.settled);
  CHECK(verdict.winner.chained);
  CHECK(verdict.winner.gathered != 0);
  CHECK(verdict.gain == Approx(0.28).margin(0.02));
  CHECK(verdict.low < verdict.gain);
  CHECK(verdict.gain < verdict.high);
  CHECK(verdict.pairs >= 4);
  CHECK(run.settled_at < 150);
}

TEST_CASE("Gathering is tried where blocks have launches beside those of graphs", "[submission]") {
  SubmissionSearch search({true, {8, 16, 32}}, {.block_seconds = 1e-3});
  std::uint64_t block = 0;
  const auto gathers = [&](int blocks, bool has_launches) {
    bool any = false;
    for (const std::uint64_t end = block + static_cast<std::uint64_t>(blocks); block < end;
         ++block) {
      search.elapsed(1e-3 * static_cast<double>(block));
      search.saw_block(has_launches);
      any = search.plan(block).gathered != 0 || any;
      search.measured(block, 1e-3, 4);
    }
    return any;
  };
  SECTION("from the first of them on") {
    CHECK_FALSE(gathers(10, false));
    CHECK(gathers(40, true));
  }
  SECTION("although nothing else may be tried before") {
    SubmissionSearch alone({false, {8, 16, 32}}, {.block_seconds = 1e-3});
    alone.saw_block(false);
    CHECK_FALSE(alone.settled());
  }
  SECTION("not for long after a few of them") {
    CHECK(gathers(4, true));
    (void)gathers(17, false);
    CHECK_FALSE(gathers(100, false));
  }
}

TEST_CASE("A gain has to last for a while where blocks are short, unless it is large",
          "[submission]") {
  SimulatedProgram program;
  program.noise = 0.005;
  program.block_seconds = program.limits.block_seconds = 0.2e-3;
  program.ratio = [](const Submission& submission) { return submission.chained ? 0.85 : 1; };
  CHECK(run_program(program, 1).state.verdict.pairs == 8);
  program.ratio = [](const Submission& submission) { return submission.chained ? 0.6 : 1; };
  CHECK(run_program(program, 1).state.verdict.pairs == 4);
}

TEST_CASE("Where only one submission is faster it is found", "[submission]") {
  for (const Submission& only :
       {Submission{true, 0}, Submission{false, 16}, Submission{true, 16}}) {
    SimulatedProgram program;
    program.ratio = [&](const Submission& submission) {
      return submission == only ? 0.9 : submission.is_as_written() ? 1 : 1.01;
    };
    int found = 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed)
      found += run_program(program, seed).state.verdict.winner == only;
    INFO(text_of(only));
    CHECK(found >= 18);
  }
}

TEST_CASE("A size that is better than the one of the first look is found", "[submission]") {
  for (const std::uint32_t size : {8U, 32U}) {
    for (const bool chained : {false, true}) {
      SimulatedProgram program;
      program.ratio = [&](const Submission& submission) {
        if (submission.gathered == 0) return 1.0;
        return (submission.gathered == size ? 0.8 : 0.9) +
               (submission.chained == chained ? 0 : 0.05);
      };
      int found = 0;
      for (std::uint64_t seed = 1; seed <= 20; ++seed)
        found += run_program(program, seed).state.verdict.winner == Submission{chained, size};
      INFO(text_of({chained, size}));
      CHECK(found >= 18);
    }
  }
}

TEST_CASE("Kernels that lose by it are left out of chaining, and those that win are not",
          "[submission]") {
  struct Drawn {
    std::vector<double> kernels;
    std::uint32_t ordinary;
  };
  for (const Drawn& drawn :
       {Drawn{{0.97, 0.97, 1.06, 0.97}, 0b0100}, Drawn{{0.94, 0.96, 1.05, 1.06}, 0b1100},
        Drawn{{1.04, 0.92}, 0b01}, Drawn{{0.95, 0.97}, 0},
        Drawn{{0.97, 0.97, 0.97, 0.97, 0.97, 0.97, 0.97, 1.08}, 0b10000000}}) {
    for (const std::uint32_t size : {0U, 16U}) {
      SimulatedProgram program;
      program.noise = 0.005;
      program.kernels = drawn.kernels;
      program.choices.may_gather = size == 0 ? std::vector<std::uint32_t>{} : std::vector{size};
      program.ratio = [](const Submission& submission) {
        return submission.gathered != 0 ? 0.8 : 1;
      };
      int found = 0;
      for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        const SeveralRuns several = run_until_settled(program, seed);
        found += several.state.verdict.winner == Submission{true, size, drawn.ordinary};
        CHECK(several.runs <= 2);
        CHECK(several.worst_share < 1);
      }
      INFO(text_of({true, size, drawn.ordinary}));
      CHECK(found >= 17);
    }
  }
}

TEST_CASE("A program is settled by its second run, whichever kernels are still to be compared",
          "[submission]") {
  SimulatedProgram program;
  program.kernels = {0.99, 0.99, 0.99, 0.99, 0.99, 0.99, 0.99, 0.99};
  program.choices.may_gather.clear();
  program.blocks = 120;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const SeveralRuns several = run_until_settled(program, seed);
    CHECK(several.runs <= 2);
    CHECK(several.state.verdict.winner == Submission{true, 0});
  }
}

TEST_CASE("What may not be tried is not", "[submission]") {
  for (const SubmissionChoices& choices :
       {SubmissionChoices{true, {}}, SubmissionChoices{false, {8, 16, 32}},
        SubmissionChoices{true, {32}}, SubmissionChoices{}}) {
    SimulatedProgram program = gaining_program();
    program.choices = choices;
    bool allowed = true;
    program.ratio = [&, ratio = program.ratio](const Submission& submission) {
      allowed = allowed && choices.allow(submission);
      return ratio(submission);
    };
    const SubmissionState state = run_program(program, 1).state;
    CHECK(allowed);
    CHECK(state.verdict.settled);
    CHECK(state.verdict.winner.chained == choices.may_chain);
    CHECK((state.verdict.winner.gathered != 0) == !choices.may_gather.empty());
  }
}

TEST_CASE("Launches are compared anew where other kernels may be chained or gathered",
          "[submission]") {
  SimulatedProgram program;
  program.ratio = [](const Submission&) { return 1.0; };
  SubmissionState state = run_until_settled(program, 1).state;
  REQUIRE(state.verdict.settled);
  CHECK(state.verdict.winner.is_as_written());

  SimulatedProgram with_more = gaining_program();
  CHECK(run_program(with_more, 2, state).state.verdict.winner.is_as_written());  // as was found
  with_more.choices.rules = 7;
  state = run_program(with_more, 2, state).state;
  CHECK(state.verdict.winner.chained);
  CHECK(state.verdict.winner.gathered != 0);
  CHECK(state.choices.rules == 7);
}

TEST_CASE("What differs by less than the margin stays as written", "[submission]") {
  int kept = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SimulatedProgram program;
    program.noise = 0.002;
    program.ratio = [](const Submission& submission) {
      return submission.is_as_written() ? 1 : 0.995;
    };
    const SubmissionVerdict verdict = run_program(program, seed).state.verdict;
    CHECK(verdict.settled);
    kept += !verdict.winner.is_as_written();
  }
  CHECK(kept == 0);
}

TEST_CASE("Results may be late, and blocks may say nothing", "[submission]") {
  for (const std::uint64_t lag : {0U, 1U, 7U, 60U}) {
    for (const double spoiled : {0.0, 0.3}) {
      SimulatedProgram program = gaining_program();
      program.lag = lag;
      program.spoiled = spoiled;
      const SubmissionVerdict verdict = run_program(program, lag + 1).state.verdict;
      INFO("lag " << lag << ", spoiled " << spoiled);
      CHECK(verdict.settled);
      CHECK(verdict.winner.chained);
      CHECK(verdict.winner.gathered != 0);
    }
  }
}

TEST_CASE("A program whose blocks never say anything stays as written", "[submission]") {
  SimulatedProgram program = gaining_program();
  program.says_nothing = true;
  const SimulatedRun run = run_program(program, 1);
  CHECK_FALSE(run.state.verdict.settled);
  CHECK(run.tried < 100);
  const SeveralRuns several = run_until_settled(program, 1);
  CHECK(several.runs == 2);
  CHECK(several.state.verdict.winner.is_as_written());
  CHECK(several.state.verdict.why == "no answer in 2 runs");
}

TEST_CASE("Results that never come are waited for no longer than 1024 blocks", "[submission]") {
  SubmissionSearch search({true, {16}}, {.block_seconds = 1e-3});
  std::uint64_t tried = 0;
  for (std::uint64_t block = 0; block < 10000; ++block) {
    search.elapsed(static_cast<double>(block) * 1e-3);
    tried += !search.plan(block).is_as_written();
  }
  CHECK(tried > 2);
  CHECK(tried < 200);
  CHECK(search.verdict().winner.is_as_written());
}

TEST_CASE("A search in which everything loses costs no more than it may and ends as written",
          "[submission]") {
  for (const double factor : {1.03, 1.15, 1.6, 3.0, 12.0}) {
    for (const double seconds : {1e-3, 5e-3, 40e-3}) {
      SimulatedProgram program;
      program.ratio = [=](const Submission& submission) {
        return (submission.chained ? std::min(factor, 1.3) : 1) *
               (submission.gathered != 0 ? factor : 1);
      };
      program.preparation = 0.010;
      program.block_seconds = seconds;
      program.limits.block_seconds = seconds;
      const SeveralRuns several = run_until_settled(program, 1);
      INFO("factor " << factor << ", blocks of " << seconds << " s");
      CHECK(several.state.verdict.winner.is_as_written());
      CHECK(several.worst_share < 1);
      CHECK(several.runs < 3);
    }
  }
}

TEST_CASE("Nothing is tried until the program has run long enough to pay for the preparation",
          "[submission]") {
  SimulatedProgram program = gaining_program();
  program.preparation = 0.120;
  program.blocks = 600;
  CHECK(run_program(program, 1).tried == 0);
  program.blocks = 3000;
  const SimulatedRun run = run_program(program, 1);
  CHECK(run.state.verdict.winner.chained);
  CHECK(run.kept_at > 600);
  CHECK(run.share_of_allowance() < 1);
}

TEST_CASE("A block that was slower than as written counts by what it took longer", "[submission]") {
  SubmissionSearch search({true, {}}, {.block_seconds = 20e-3});
  std::uint64_t tried = 0;
  for (std::uint64_t block = 0; block < 100; ++block) {
    const bool as_written = search.plan(block).is_as_written();
    tried += !as_written;
    search.measured(block, as_written ? 20e-3 : 40e-3, 1);
    CHECK(search.budget().spent() == Approx(20e-3 * static_cast<double>(tried)));
  }
  // No time has passed: 50 ms are allowed.
  CHECK(tried == 2);
}

TEST_CASE("A winner that was confirmed runs also when nothing more may be spent", "[submission]") {
  SimulatedProgram program = gaining_program();
  SubmissionSearch search(program.choices, program.limits);
  std::uint64_t block = 0;
  for (; block < 200 && search.verdict().winner.is_as_written(); ++block) {
    const Submission submission = search.plan(block);
    search.measured(block, 1e-3 * program.ratio(submission) * (block % 3 == 0 ? 1.001 : 1), 1);
  }
  REQUIRE_FALSE(search.settled());
  const Submission winner = search.verdict().winner;
  search.spend(10);
  for (const std::uint64_t end = block + 20; block < end; ++block) {
    const Submission submission = search.plan(block);
    if (submission.is_as_written()) CHECK(false);
    search.measured(block, 1e-3 * program.ratio(submission), 1);
  }
  CHECK(search.plan(block) == winner);
}

TEST_CASE("A short program is settled over its runs", "[submission]") {
  SimulatedProgram program = gaining_program();
  program.blocks = 36;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const SeveralRuns several = run_until_settled(program, seed);
    INFO("seed " << seed);
    CHECK(several.runs > 1);
    CHECK(several.runs <= 4);
    CHECK(several.state.verdict.winner.gathered != 0);
    CHECK(several.worst_share < 1);
  }
}

TEST_CASE("A program of a few blocks is left as written after four runs", "[submission]") {
  SimulatedProgram program = gaining_program();
  program.blocks = 4;
  const SeveralRuns several = run_until_settled(program, 1);
  CHECK(several.runs == 4);
  CHECK(several.state.verdict.settled);
  CHECK(several.state.verdict.winner.is_as_written());
  CHECK(several.state.verdict.why == "no answer in 4 runs");
  const SimulatedRun next = run_program(program, 7, several.state);
  CHECK(next.tried == 0);
  CHECK(next.state == several.state);
}

TEST_CASE("A settled winner runs from the first block of the next run on", "[submission]") {
  const SubmissionState settled = run_program(gaining_program(), 1).state;
  SubmissionSearch search({true, {8, 16, 32}}, {}, settled);
  CHECK(search.settled());
  for (std::uint64_t block = 0; block < 50; ++block)
    CHECK(search.plan(block) == settled.verdict.winner);
  CHECK(search.state() == settled);
}

TEST_CASE("When other submissions may be tried the search goes on with what was measured",
          "[submission]") {
  SimulatedProgram program = gaining_program();
  program.choices = {true, {}};
  const SubmissionState chained = run_program(program, 1).state;
  REQUIRE(chained.verdict.winner == Submission{true, 0});
  program.choices = {true, {8, 16, 32}};
  const SimulatedRun run = run_program(program, 2, chained);
  CHECK(run.state.verdict.winner.gathered != 0);
  CHECK(run.state.runs == 1);
  program.choices = {};
  CHECK(run_program(program, 3, chained).state.verdict.winner.is_as_written());
}

TEST_CASE("A winner that is still faster passes its check, another one is given up",
          "[submission]") {
  SimulatedProgram program = gaining_program();
  const SubmissionState settled = run_program(program, 1).state;
  for (const bool still : {true, false}) {
    SubmissionSearch search(program.choices, program.limits, settled);
    search.doubt_winner(false);
    CHECK_FALSE(search.settled());
    std::uint64_t block = 0;
    std::uint64_t as_written = 0;
    for (; block < 400 && !search.settled(); ++block) {
      search.elapsed(static_cast<double>(block) * 1e-3);
      const Submission submission = search.plan(block);
      as_written += submission.is_as_written();
      const double ratio = still ? program.ratio(submission) : submission.is_as_written() ? 1 : 1.1;
      search.measured(block, 1e-3 * ratio * (block % 3 == 0 ? 1.001 : 1), 1);
    }
    CHECK(search.settled());
    if (still) {
      CHECK(as_written == 5);  // one of them to warm up
      SubmissionVerdict verdict = settled.verdict;
      CHECK(std::abs(search.verdict().gain - verdict.gain) < 0.01);
      CHECK(search.verdict().pairs == 4);
      // Its figures are those of now.
      verdict.gain = search.verdict().gain;
      verdict.low = search.verdict().low;
      verdict.high = search.verdict().high;
      verdict.pairs = search.verdict().pairs;
      CHECK(search.verdict() == verdict);
    } else {
      CHECK(search.verdict().winner.is_as_written());
    }
  }
}

/// What a settled search of the program is where its winner is in doubt in the next run.
SubmissionState doubted(const SimulatedProgram& program) {
  SubmissionSearch search(program.choices, program.limits, run_program(program, 1).state);
  REQUIRE(search.settled());
  search.doubt_winner(false);
  return search.state();
}

TEST_CASE("A doubted winner is kept only where a gain is shown again", "[submission]") {
  SimulatedProgram program = gaining_program();
  const SubmissionState in_doubt = doubted(program);
  program.ratio = [](const Submission&) { return 1; };
  program.noise = 0.05;
  int kept = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const SubmissionVerdict verdict = run_program(program, seed, in_doubt).state.verdict;
    CHECK(verdict.settled);
    CHECK((verdict.winner.is_as_written() || verdict.low > 0));
    kept += !verdict.winner.is_as_written();
  }
  CHECK(kept <= 4);
}

TEST_CASE("Short runs show a doubted winner again together, or leave it", "[submission]") {
  SimulatedProgram program = gaining_program();
  SubmissionState state = doubted(program);
  const Submission winner = state.verdict.winner;
  program.blocks = 8;  // some of them to warm up
  int runs = 0;
  for (; state.doubted && runs < 10; ++runs)
    state = run_program(program, static_cast<std::uint64_t>(runs), state).state;
  CHECK(runs > 1);
  CHECK(state.verdict.winner == winner);
  CHECK(state.verdict.low > 0);

  state = doubted(program = gaining_program());
  program.blocks = 2;  // no pair
  for (runs = 0; state.doubted && runs < 10; ++runs)
    state = run_program(program, static_cast<std::uint64_t>(runs), state).state;
  CHECK(runs == program.limits.max_runs);
  CHECK(state.verdict.settled);
  CHECK(state.verdict.winner.is_as_written());
  CHECK(state.verdict.why == "the winner of earlier runs was not shown again in 4 runs");
}

TEST_CASE("A doubted winner is compared although all that may be spent is gone", "[submission]") {
  SimulatedProgram program = gaining_program();
  const SubmissionState in_doubt = doubted(program);
  program.preparation = 1;
  CHECK(run_program(program, 1, in_doubt).settled_at < program.blocks);
}

TEST_CASE("A winner that lacked images is doubted in the runs that a search may take, no more",
          "[submission]") {
  const SimulatedProgram program = gaining_program();
  SubmissionState state = run_program(program, 1).state;
  int runs = state.runs;
  for (; runs < 10; ++runs) {
    state.lacks_images = runs < program.limits.max_runs;
    SubmissionSearch search(program.choices, program.limits, state);
    if (!search.doubt_winner(true)) break;
    state = run_program(program, 2, search.state()).state;
    CHECK(state.verdict.settled);
    CHECK(state.runs == runs + 1);
  }
  CHECK(runs == program.limits.max_runs);
}

TEST_CASE("Turns go on until the process ends, whatever they cost, and are judged by all of them",
          "[submission]") {
  for (const double ratio : {0.8, 1.25, 40.0}) {
    INFO(ratio);
    SubmissionLimits limits;
    limits.max_slowdown = 0;
    limits.grace_seconds = 0;
    SubmissionSearch search({}, limits);
    search.take_turns({.chained = true, .gathered = 16});
    std::uint64_t as_written = 0;
    constexpr std::uint64_t blocks = 1000;
    for (std::uint64_t block = 0; block < blocks; ++block) {
      const Submission submission = search.plan(block);
      as_written += submission.is_as_written();
      if (block % 5 == 4) {
        search.spoiled(block);
      } else {
        search.measured(block, submission.is_as_written() ? 1e-3 : 1e-3 * ratio, 1);
      }
      REQUIRE_FALSE((search.settled() || search.is_blocked() || search.wants_kernels()));
    }
    CHECK(as_written > blocks * 2 / 5);
    const SubmissionVerdict verdict = search.verdict_of_turns();
    CHECK(verdict.winner == Submission{true, 16});
    CHECK(verdict.pairs > static_cast<int>(blocks) / 5);
    CHECK(verdict.gain == Approx(1 - ratio));
    CHECK(verdict.low <= verdict.gain);
    CHECK(verdict.gain <= verdict.high);
  }
}

TEST_CASE("Of many turns the latest are judged", "[submission]") {
  SubmissionSearch search({}, {});
  search.take_turns({.chained = true, .gathered = 0}, 64);
  for (std::uint64_t block = 0; block < 2000; ++block) {
    const double ratio = search.plan(block).is_as_written() ? 1 : block < 1000 ? 1.5 : 0.8;
    search.measured(block, 1e-3 * ratio, 1);
    REQUIRE_FALSE(search.settled());
  }
  const SubmissionVerdict verdict = search.verdict_of_turns();
  CHECK(verdict.winner == Submission{true, 0});
  CHECK(verdict.gain == Approx(0.2));
  CHECK(verdict.pairs >= 32);
  CHECK(verdict.pairs <= 64);
}

TEST_CASE("The blocks in which graphs are built do not count", "[submission]") {
  SimulatedProgram program = gaining_program();
  std::vector<Submission> built;
  program.ratio = [&, ratio = program.ratio](const Submission& submission) {
    if (submission.gathered == 0 ||
        std::find(built.begin(), built.end(), submission) != built.end())
      return ratio(submission);
    built.push_back(submission);
    return 6.0;
  };
  CHECK(run_program(program, 1).state.verdict.gain == Approx(0.28).margin(0.02));
}

TEST_CASE("Equal calls get equal answers", "[submission]") {
  const SimulatedProgram program = gaining_program();
  CHECK(run_program(program, 5).state == run_program(program, 5).state);
}

TEST_CASE("What was chained in part is found out about anew, and what was gathered is not",
          "[submission]") {
  SubmissionState state;
  state.runs = 1;
  state.choices = {true, {16}};
  state.screened = {{{true, 0}, {1.0}}, {{false, 16}, {0.8}}, {{true, 16}, {0.8}}};
  state.pairs = {{{true, 16}, {}, {0.2}, {}},
                 {{false, 16}, {}, {0.2}, {}},
                 {{false, 16}, {true, 0}, {0.1}, {}}};
  state.verdict.settled = true;
  state.verdict.winner = {false, 16};
  forget_chaining(state);
  CHECK(state.screened == std::vector<ScreenedSubmission>{{{false, 16}, {0.8}}});
  CHECK(state.pairs == std::vector<SubmissionPairs>{{{false, 16}, {}, {0.2}, {}}});
  CHECK_FALSE(state.verdict.settled);
  CHECK(state.verdict.winner == Submission{false, 16});
}

TEST_CASE("Blocks of different work are compared by what they take beside it", "[submission]") {
  SimulatedProgram program;
  program.ratio = [](const Submission& submission) { return submission.chained ? 0.9 : 1.0; };
  SubmissionSearch search({true, {}}, {});
  for (std::uint64_t block = 0; block < 400 && !search.settled(); ++block) {
    const Submission submission = search.plan(block);
    if (search.wants_kernels()) search.number_kernels({});
    const double work = block / 10 % 2 == 0 ? 1 : 7.5;
    search.elapsed(static_cast<double>(block) * 1e-3);
    search.measured(block, 1e-3 * work * program.ratio(submission), work);
  }
  CHECK(search.settled());
  CHECK(search.verdict().winner == Submission{true, 0});
  CHECK(std::abs(search.verdict().gain - 0.1) < 1e-3);
}
