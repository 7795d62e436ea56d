// Puts winners into a store, for tests of the command:
//   write_store FOLDER NAME GPU DRIVER SECONDS SITE WINNER [SITE WINNER ...]
// SECONDS since 1970 is when. A WINNER of a kernel is its block, "default" for 128; one of a
// collective is "ALGORITHM PROTOCOL CHANNELS", or "default ALGORITHM PROTOCOL"; "crashed ALGORITHM
// PROTOCOL": it has that default, and all that is noted of it is a config that crashed. One of the
// site `launches` is as --force has it: "chained gathered=16".
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "core/submission/submission_stored.hpp"
#include "store/file_store.hpp"

using namespace contextune;

namespace {

StoredSite kernel(const std::string& name, const std::string& winner) {
  const auto config = [](std::int64_t block) { return Config{{"block", block}, {"share", 0.5}}; };
  StoredSite site;
  site.name = name;
  site.key = {{"n", std::int64_t{1024}}};
  site.trials = {{config(128), TrialStatus::Measured, 5, 4e-6, 3.9e-6, 4.2e-6},
                 {config(256), TrialStatus::Measured, 5, 3e-6, 2.9e-6, 3.1e-6},
                 {config(4096), TrialStatus::LaunchFailed, 0, NAN, NAN, NAN}};
  site.winner = config(winner == "default" ? 128 : std::atoll(winner.c_str()));
  site.reason = winner == "default" ? WinnerReason::Margin : WinnerReason::Fastest;
  site.seconds = winner == "default" ? 4e-6 : 3e-6;
  site.default_seconds = 4e-6;
  return site;
}

StoredSite collective(const std::string& name, const std::string& winner) {
  StoredSite site;
  site.name = name;
  site.key = {{"type", std::string("f32")},
              {"op", std::string("sum")},
              {"bytes", std::string("32769-65536")},
              {"ranks", std::int64_t{4}},
              {"nodes", std::int64_t{1}}};
  site.trials = {{{}, TrialStatus::Measured, 5, 4e-5, 4e-5, 4e-5}};
  std::istringstream words(winner);
  std::string algorithm;
  std::string protocol;
  std::int64_t channels = 0;
  words >> algorithm;
  if (algorithm == "crashed") {
    site.reason = WinnerReason::NoSamples;
    site.trials.front() = {{{"algorithm", "Ring"}, {"protocol", "LL"}, {"channels", channels}},
                           TrialStatus::Crashed,
                           0,
                           NAN,
                           NAN,
                           NAN};
  }
  if (algorithm == "default" || algorithm == "crashed") {
    std::getline(words >> std::ws, site.default_choice);
    return site;
  }
  words >> protocol >> channels;
  site.winner = {{"algorithm", algorithm}, {"protocol", protocol}, {"channels", channels}};
  site.trials.push_back({site.winner, TrialStatus::Measured, 5, 3e-5, 3e-5, 3e-5});
  return site;
}

StoredSite launches(const std::string& winner) {
  SubmissionState state;
  state.runs = 1;
  state.verdict.settled = true;
  state.verdict.winner = submission_of(winner).value();
  state.verdict.gain = 0.42;
  state.choices = {true, {state.verdict.winner.gathered}};
  return stored_submission(state, "launches", {{"program", std::string("engine")}}, "build 1");
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() < 7 || words.size() % 2 == 0) return 64;
  std::vector<StoredSite> sites;
  for (std::size_t i = 5; i < words.size(); i += 2) {
    if (words[i] == "launches") {
      sites.push_back(launches(words[i + 1]));
      continue;
    }
    const bool is_collective = words[i].starts_with("all_");
    sites.push_back(is_collective ? collective(words[i], words[i + 1])
                                  : kernel(words[i], words[i + 1]));
  }
  store::FileStore store(
      words[0],
      [](FallbackReason, const std::string& sentence) { std::cerr << sentence << std::endl; },
      {5, [&] { return std::atoll(words[4].c_str()); }});
  StoreIdentity identity{
      StoredKind::Region, words[1], {{{"gpu", words[2]}}, {{"driver", words[3]}}}};
  std::optional<StoredConfirm> confirm{{ConfirmVerdict::Kept, 1e-3, 9e-4, 0.1, 0.08, 8}};
  if (constexpr std::string_view of = "function:"; identity.name.starts_with(of)) {
    identity.kind = StoredKind::Function;
    identity.name.erase(0, of.size());
    confirm.reset();
  }
  return store.save(identity, sites, confirm) ? 0 : 1;
}
