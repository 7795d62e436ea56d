#include "core/submission/submission_text.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "catch.hpp"
#include "simulated_program.hpp"

using namespace contextune;

namespace {

/// A state with all that there may be.
SubmissionState full_state() {
  return {2,
          {true, {8, 16}},
          {{77, 78}},
          {{{true, 16}, {0.8, 0.7}}, {{false, 8}, {}}},
          {{{true, 16}, {}, {0.25, -0.5}, {0.125}}, {{true, 16, 2}, {true, 0}, {}, {}}},
          {true, {true, 16}, 0.2, 0.1, 0.3, 4, "50 % \xc3\xa9\n"},
          true,
          0.001,
          1.5,
          {5, 6},
          true};
}

const std::string full_text =
    "1 runs=2 chain=1 gather=8,16 block=0.001 settled=1 winner=c16 gain=0.2 low=0.1 high=0.3 "
    "pairs=4 seconds=1.5 kernels=77,78 images=5,6 lacking doubted screen=c16:0.8,0.7 screen=8: "
    "pair=c16/0:0.25,-0.5/0.125 "
    "pair=c16-2/c0:/ "
    "why=50 %25 %c3%a9%0a";

/// `full_text` with other words in it.
std::string with(std::string_view words, std::string_view others) {
  std::string text = full_text;
  const std::size_t at = text.find(words);
  REQUIRE(at != text.npos);
  return text.replace(at, words.size(), others);
}

std::string repeated(std::string_view words, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += words;
  return text;
}

}  // namespace

TEST_CASE("A search's state is one line of ASCII, and comes back", "[submission]") {
  SubmissionState with_rules = full_state();
  with_rules.choices.rules = 9;
  CHECK(text_of(with_rules) == with(" block=", " rules=9 block="));
  CHECK(submission_state_of(text_of(with_rules)) == with_rules);
  CHECK(text_of(full_state()) == full_text);
  CHECK(submission_state_of(full_text) == full_state());
  CHECK(submission_state_of(text_of(SubmissionState{})) == SubmissionState{});
}

TEST_CASE("The states of searches come back from their texts at any time", "[submission]") {
  SimulatedProgram program;
  program.ratio = [](const Submission& submission) {
    return (submission.chained ? 0.95 : 1) * (submission.gathered != 0 ? 0.97 : 1);
  };
  program.noise = 0.05;
  SubmissionState state;
  for (std::uint64_t run = 0; run < 6; ++run) {
    program.blocks = 20 << run;
    state = run_program(program, run, state).state;
    INFO(text_of(state));
    CHECK(submission_state_of(text_of(state)) == state);
  }
  CHECK(state.pairs.size() > 0);
}

TEST_CASE("Doubles of a state come back in every bit", "[submission]") {
  std::mt19937_64 random(3);
  SubmissionState state = full_state();
  std::vector<double>& gains = state.pairs[0].against_first;
  while (gains.size() < 1000) {
    const std::uint64_t bits = random();
    double gain = 0;
    std::memcpy(&gain, &bits, sizeof(gain));
    if (std::isfinite(gain)) gains.push_back(gain);
  }
  using Limits = std::numeric_limits<double>;
  gains.insert(gains.end(), {Limits::denorm_min(), Limits::min(), Limits::max(), 0.1, 1e23});
  CHECK(submission_state_of(text_of(state)) == state);
}

TEST_CASE("A text that no search wrote is no state", "[submission]") {
  for (std::size_t size = 0; size + 4 < full_text.size(); ++size) {
    if (full_text.substr(0, size).find(" why=") != std::string::npos) break;
    INFO(size);
    CHECK_FALSE(submission_state_of(full_text.substr(0, size)));
  }
  for (const auto& [words, others] : std::vector<std::pair<std::string, std::string>>{
           {"1 runs", "2 runs"},
           {"1 runs", " 1 runs"},
           {"runs=2", "runs=-2"},
           {"runs=2", "runs=02"},
           {"runs=2", "runs=+2"},
           {"runs=2", "runs=99999999999"},
           {"runs=2", "runs=2.0"},
           {"chain=1", "chain=2"},
           {"chain=1", "chain=0"},  // the winner is chained
           {"gather=8,16", "gather=8"},
           {"gather=8,16", "gather=16,8"},
           {"gather=8,16", "gather=16,16"},
           {"gather=8,16", "gather=0,16"},
           {"gather=8,16", "gather=8,16,"},
           {"gather=8,16", "gather=8,16,4294967296"},
           {"block=0.001", "block=-1"},
           {"block=0.001", "block=1e-03"},
           {"gain=0.2", "gain=nan"},
           {"gain=0.2", "gain=1e999"},
           {"gain=0.2", "gain=0x1"},
           {"gain=0.2", "gain= 0.2"},
           {"low=0.1", "low=-inf"},
           {"low=0.1 ", ""},
           {"pairs=4", "pairs=-4"},
           {"screen=c16:0.8", "screen=c16:-0.8"},
           {"screen=c16:0.8", "screen=c16:0"},
           {"screen=c16:0.8", "screen=c16:inf"},
           {"screen=8:", "screen=c16:"},  // twice
           {"screen=8:", "screen=0:"},
           {"screen=8:", "screen=cc8:"},
           {"pair=c16/0", "pair=c16/c16"},
           {"pair=c16/0", "pair=0/c16"},
           {"pair=c16/0", "pair=c16-2/c0"},  // twice
           {"c16-2", "c16-3"},               // none would be chained
           {"c16-2", "c16-4"},
           {"c16-2", "c16-0"},
           {"c16-2", "16-2"},
           {"winner=c16", "winner=0"},  // there is none to be in doubt of
           {"kernels=77,78 ", ""},
           {"kernels=77,78", "kernels=77"},
           {"0.125", "0.125/"},
           {"0.125", "0.12500000000000000001"},
           {"%25", "%"},
           {"%25", "%2"},
           {"%25", "%41"},
           {"%c3", "%C3"},
           {"%0a", "\n"},
           {"50", std::string(1, '\0')}}) {
    INFO(words << " -> " << others);
    CHECK_FALSE(submission_state_of(with(words, others)));
  }
}

TEST_CASE("A state that is too large to be read has no text", "[submission]") {
  CHECK_FALSE(submission_state_of(repeated(full_text, 10000)));
  CHECK_FALSE(submission_state_of(full_text + std::string(1 << 20, 'x')));
  CHECK_FALSE(submission_state_of(with("0.125", "0.125" + repeated(",1", 4096))));
  CHECK(submission_state_of(with("0.125", "0.125" + repeated(",1", 4095))));
  SubmissionState state = full_state();
  state.verdict.why.assign(70000, 'x');
  CHECK(text_of(state).empty());
  state = full_state();
  for (std::uint32_t size = 100; state.screened.size() <= 64; ++size)
    state.screened.push_back({{false, size}, {1}});
  CHECK(text_of(state).empty());
  state.screened.pop_back();
  CHECK(submission_state_of(text_of(state)) == state);
}
