#include "api/function/function_call.hpp"

#include <algorithm>
#include <array>

#include <contextune/error.hpp>

#include "api/failure_text.hpp"
#include "api/function/function_space.hpp"
#include "api/last_error.hpp"
#include "api/named_values.hpp"
#include "api/program_call.hpp"
#include "intercept/host/uncancelled.hpp"

namespace contextune::api {
namespace {

/// Nothing more is known of a config that has failed.
std::string failure_text(int status) {
  const std::string why(take_failure());
  note_failure(why.empty() ? nullptr : why.c_str());
  return why.empty() ? "failed with " + std::to_string(status) : why;
}

/// The ranks of a communicator, as part of a key: empty: all of the job, or this one alone.
/// @return false: they were not found, and `text` says why
bool find_group(void* communicator, std::string& text) {
  std::array<char, 4096> ranks{};
  const bool found = contextune_communicator_ranks(communicator, ranks.data(), ranks.size()) == 0;
  text = found ? ranks.data() : contextune_error();
  return found;
}

void set(contextune_entry& entry, const char* option, const std::string& value) {
  if (contextune_region_option(&entry, option, value.c_str()) != 0) throw Error(contextune_error());
}

}  // namespace

int FunctionCall::run(std::uint32_t number) {
  if (!list_configs()) return run_unlisted();
  if (given_.is_untuned == 0) measure_hints();
  FunctionProblem* const problem = function_.problem(number);
  if (problem == nullptr) {  // nothing is kept of it
    const Pruning pruning = prune_all(static_cast<std::uint32_t>(function_.configs.size()));
    if (pruning.kept.empty()) throw Error(failure_of(Key(), pruning.reasons));
    return run_config(pruning.kept.front(), true);
  }
  const FunctionWays& ways = ways_of(*problem);
  say_untuned(*problem);
  // A problem whose ranks were not found runs its default.
  const std::uint32_t known = given_.is_untuned != 0              ? ways.kept.front()
                              : ways.number == CONTEXTUNE_UNTUNED ? ways.kept.front()
                                                                  : function_.settled(*problem);
  if (given_.set != nullptr && *given_.set != '\0')
    return run_override(*problem, known == CONTEXTUNE_UNSETTLED ? ways.kept.front() : known);
  if (known == CONTEXTUNE_UNSETTLED) return run_unsettled(*problem, ways);
  say_run(*problem, known);
  return run_settled(*problem, ways, known);
}

int FunctionCall::tune(std::uint32_t number) {
  if (contextune_current_place() != contextune_place_free || !list_configs()) return 0;
  FunctionProblem* const problem = function_.problem(number);
  if (problem == nullptr) return 0;
  const FunctionWays& ways = ways_of(*problem);
  say_untuned(*problem);
  // A winner borrowed from a near size is not its own. The default may leave its place meanwhile.
  const auto is_tuned = [&] {
    const FunctionWays* const now = problem->ways.load(std::memory_order_acquire);
    return contextune_tunable_settled(function_.tunable.load(), now->number) !=
           CONTEXTUNE_UNSETTLED;
  };
  if (ways.number == CONTEXTUNE_UNTUNED || is_tuned()) return 1;
  const int status = tune_now(*problem);
  if (status < 0) return status;
  say_settled(*problem);
  return is_tuned() ? 1 : 0;
}

bool FunctionCall::list_configs() {
  if (function_.tunable.load(std::memory_order_acquire) != nullptr) return true;
  contextune_device device{};
  device.size = sizeof device;
  if (contextune_current_device(&device) != 0 || device.num_sms == 0) return false;
  // Without a lock: the author's code may wait for a thread that calls the function as well, and
  // lists its configs for itself.
  const std::vector<std::string> listed = list_space(function_, given_, device);
  const std::lock_guard lock(function_.listing());
  if (function_.tunable.load(std::memory_order_acquire) != nullptr) return true;
  if (given_.listed != nullptr) given_.listed(given_.user);
  function_.declare(listed, " on " + text_of(device));
  return true;
}

int FunctionCall::run_unlisted() {
  contextune_device none{};
  none.size = sizeof none;
  const std::size_t count = list_space(function_, given_, none).size();
  for (std::uint32_t config = 0; config < count; ++config) {
    const int ruled_out = prune(config);
    if (ruled_out < 0) throw Left{};
    if (ruled_out == 0) return run_config(config, true);
  }
  throw Error(function_.about(
      "its config space has no config to run where no device is known; give it one"));
}

void FunctionCall::measure_hints() {
  if (function_.hints.empty() || function_.hints_claimed.load(std::memory_order_acquire)) return;
  if (contextune_current_place() != contextune_place_free) return;
  if (function_.hints_claimed.exchange(true)) return;
  if (given_.hint == nullptr)
    throw Error(function_.about("it has hints, but does not say its size() and inputs() for them"));
  for (const std::uint64_t size : function_.hints)
    if (call_program([&] { return given_.hint(given_.user, size); }) < 0) throw Left{};
}

int FunctionCall::prune(std::uint32_t config) {
  if (given_.prune == nullptr) return contextune_kept;
  return call_program([&] { return given_.prune(given_.user, config); });
}

FunctionCall::Pruning FunctionCall::prune_all(std::uint32_t num_configs) {
  Pruning result;
  for (std::uint32_t config = 0; config < num_configs; ++config) {
    static_cast<void>(take_failure());  // of something before
    const int ruled_out = prune(config);
    if (ruled_out < 0) throw Left{};
    if (ruled_out == contextune_kept) {
      result.kept.push_back(config);
      continue;
    }
    if (ruled_out == contextune_ruled_out_by_device) ++result.pruned.by_device;
    if (ruled_out == contextune_ruled_out_by_kernel) ++result.pruned.by_kernel;
    if (ruled_out == contextune_ruled_out_by_author) ++result.pruned.by_author;
    const std::string_view why = take_failure();
    result.reasons.emplace_back(config, why.empty() ? "prune rules it out" : why);
  }
  return result;
}

const FunctionWays& FunctionCall::ways_of(FunctionProblem& problem) {
  const FunctionWays* ways = problem.ways.load(std::memory_order_acquire);
  if (ways == nullptr) {
    std::string group;
    std::string why_untuned;
    if (problem.communicator != nullptr && !find_group(problem.communicator, group))
      why_untuned = std::exchange(group, {});
    Pruning pruning = prune_all(static_cast<std::uint32_t>(function_.configs.size()));
    auto made = std::make_unique<FunctionWays>();
    made->kept = std::move(pruning.kept);
    if (made->kept.empty()) made->failure = failure_of(problem.key, pruning.reasons);
    ways = &function_.publish_first(problem, std::move(made), std::move(group),
                                    std::move(why_untuned), pruning.pruned);
  }
  if (ways->kept.empty()) throw Error(ways->failure);
  return *ways;
}

int FunctionCall::run_config(std::uint32_t config, bool counts) {
  static_cast<void>(take_failure());  // of something before
  return call_program([&] { return given_.run(given_.user, config, counts ? 1 : 0); });
}

int FunctionCall::run_settled(FunctionProblem& problem, const FunctionWays& ways,
                              std::uint32_t config) {
  const int status = run_config(config, true);
  if (status == 0 || config == ways.kept.front()) return status;
  // The default says whether it was the config.
  drop(function_, problem, config);
  return run_config(ways.kept.front(), true);
}

void FunctionCall::drop(const contextune_function& function, FunctionProblem& problem,
                        std::uint32_t config) noexcept {
  const FunctionWays* const ways = problem.ways.load(std::memory_order_acquire);
  if (ways == nullptr) return;
  if (problem.near.exchange(nullptr) != nullptr)
    problem.takes_near.store(false, std::memory_order_relaxed);
  contextune_call call;
  contextune_tunable* const tunable = function.tunable.load(std::memory_order_acquire);
  const bool same = contextune_tunable_begin(tunable, ways->number, &call) == config;
  static_cast<void>(contextune_tunable_end(&call, same ? 0 : 1));
}

int FunctionCall::run_override(const FunctionProblem& problem, std::uint32_t base) {
  const Config set_by_hand = parse_config(given_.set);
  const std::string sets = "a call sets '";
  if (!function_.allow_override) {
    throw Error(function_.about(sets + set_by_hand.to_string() +
                                "' by hand; give the option allow_override where the function is "
                                "declared"));
  }
  Config wanted = function_.configs[base];
  for (const auto& [parameter, value] : set_by_hand.entries()) {
    if (wanted.find(parameter) == nullptr)
      throw Error(function_.about(sets + parameter + "', and its configs have no such parameter"));
    wanted.set(parameter, value);
  }
  const std::string text = wanted.to_string();
  if (given_.says_runs != 0) say(problem, "runs " + text + ", as the call says");
  const auto found = std::ranges::find(function_.configs, wanted);
  if (found != function_.configs.end())
    return run_config(static_cast<std::uint32_t>(found - function_.configs.begin()), true);
  if (given_.run_changed != nullptr)
    return call_program([&] { return given_.run_changed(given_.user, base, text.c_str()); });
  throw Error(function_.about(sets + set_by_hand.to_string() + "', and its space has no config '" +
                              text + "'"));
}

int FunctionCall::run_unsettled(FunctionProblem& problem, const FunctionWays& ways) {
  const std::uint32_t by_default = ways.kept.front();
  const auto run_default = [&] {
    say_run(problem, by_default);
    return run_config(by_default, true);
  };
  switch (contextune_current_place()) {
    case contextune_place_free:
      break;
    case contextune_place_region:
      problem.near.store(nullptr, std::memory_order_relaxed);
      return run_in_region(ways, true, nullptr, &problem);
    case contextune_place_untuned:
    case contextune_place_capture:
      return run_default();
  }
  if (problem.size && function_.unseen == contextune_unseen_default) return run_default();
  if (function_.unseen == contextune_unseen_nearest && function_.find_near(problem, ways)) {
    const std::uint32_t near = function_.settled(problem);
    if (near != CONTEXTUNE_UNSETTLED) {
      say_run(problem, near);
      return run_settled(problem, ways, near);
    }
  }
  const int status = tune_now(problem);
  if (status >= 0) say_settled(problem);
  return status;
}

int FunctionCall::run_in_region(const FunctionWays& ways, bool counts, Trials* trials,
                                const FunctionProblem* to_say) {
  /// Ended where the call is left, too.
  struct OpenCall {
    contextune_call call;
    ~OpenCall() { contextune_tunable_end(&call, 1); }
  } here;
  const std::uint32_t config =
      contextune_tunable_begin(function_.tunable.load(), ways.number, &here.call);
  if (to_say != nullptr) say_run(*to_say, config);
  const int status = attempt(ways, config, counts, trials);
  const bool is_default = config == ways.kept.front();
  const bool again = contextune_tunable_end(&here.call, status == 0 || is_default ? 1 : 0) != 0;
  if (status == 0 || is_default || !again) return status;
  if (to_say != nullptr) say_run(*to_say, ways.kept.front());
  return attempt(ways, ways.kept.front(), counts, trials);
}

int FunctionCall::attempt(const FunctionWays& ways, std::uint32_t config, bool counts,
                          Trials* trials) {
  const int status = run_config(config, counts);
  if (trials == nullptr) return status;
  const bool is_default = config == ways.kept.front();
  if (status == 0) {
    trials->default_ran = trials->default_ran || is_default;
    return status;
  }
  std::string why = failure_text(status);
  const auto same = [&](const auto& one) { return one.first == config; };
  if (std::ranges::none_of(trials->reasons, same))
    trials->reasons.emplace_back(config, std::move(why));
  // Once it ran, what it fails with is about something else, and the caller's.
  if (is_default && !trials->default_ran) trials->default_failed = true;
  return status;
}

int FunctionCall::tune_now(FunctionProblem& problem) {
  Reasons reasons;
  std::unique_ptr<FunctionWays> rest;  // of the configs, where the default cannot run
  for (;;) {
    const FunctionWays& ways = rest ? *rest : *problem.ways.load(std::memory_order_acquire);
    if (rest && ways.number == CONTEXTUNE_UNTUNED) {
      const std::uint32_t by_default = ways.kept.front();
      function_.publish(problem, std::move(rest));
      return run_config(by_default, true);
    }
    Trials trials;
    trials.reasons = std::move(reasons);
    bool is_disagreed = false;
    const int status = run_region(problem, ways, trials, is_disagreed);
    reasons = std::move(trials.reasons);
    if (trials.default_failed) {
      rest = without_default(problem, ways, reasons);
      continue;
    }
    if (status < 0) return status;
    problem.is_disagreed.store(is_disagreed, std::memory_order_relaxed);
    if (rest) function_.publish(problem, std::move(rest));
    function_.num_settled.fetch_add(1, std::memory_order_relaxed);
    return status;
  }
}

int FunctionCall::run_region(FunctionProblem& problem, const FunctionWays& ways, Trials& trials,
                             bool& is_disagreed) {
  /// Left where the call is, too.
  struct Entry {
    contextune_entry entry;
    ~Entry() { contextune_region_end(&entry); }
  } here;
  contextune_entry& entry = here.entry;
  contextune_tunable_region_begin(&entry, function_.tunable.load(), ways.number);
  if (contextune_region_tunes(&entry) != 0) set_up(entry, problem);
  int status = 0;
  for (int next = contextune_region_next(&entry); next != 0;
       next = contextune_region_next(&entry)) {
    // The caller's own run is over where the default is run for a second time to see what it
    // leaves.
    const bool counts = next != 2;
    const int one = run_in_region(ways, counts, &trials, nullptr);
    if (counts) status = one;
    if (trials.default_failed || (counts && one < 0)) return status;
    if (one < 0) {
      contextune_region_end(&entry);
      break;
    }
  }
  is_disagreed = contextune_region_untuned(&entry) != 0;
  return status;
}

void FunctionCall::set_up(contextune_entry& entry, const FunctionProblem& problem) {
  // Where they are not found the default runs, and contextune_error() says why.
  if (problem.communicator != nullptr &&
      contextune_region_communicator(&entry, problem.communicator) != 0)
    return;
  set(entry, "n_warmup", std::to_string(function_.n_warmup));
  set(entry, "n_repeat", std::to_string(function_.n_repeat));
  set(entry, "schedule", "table");
  set(entry, "selection", "median");
  // There are no neighbours to refine it beside.
  set(entry, "refine", "off");
  set(entry, "confirm", "on");
  set(entry, "align", "sample");
  if (function_.repeatable) set(entry, "repeatable", "on");
  if (given_.begin != nullptr &&
      call_program([&] { return given_.begin(given_.user, &entry); }) != 0)
    throw Left{};
}

std::unique_ptr<FunctionWays> FunctionCall::without_default(const FunctionProblem& problem,
                                                            const FunctionWays& ways,
                                                            const Reasons& reasons) const {
  if (ways.kept.size() == 1) throw Error(failure_of(problem.key, reasons));
  auto rest = std::make_unique<FunctionWays>();
  rest->kept.assign(ways.kept.begin() + 1, ways.kept.end());
  rest->num_failed = ways.num_failed + 1;
  contextune_pruned pruned{};
  pruned.failed = rest->num_failed;
  function_.number(problem, *rest, pruned);
  return rest;
}

std::string FunctionCall::failure_of(const Key& key, const Reasons& reasons) const {
  std::string text = function_.about("no config can run for '" + key.to_string() + "':");
  for (const auto& [config, why] : reasons)
    text += "\n  " + function_.configs[config].to_string() + ": " + why;
  return text;
}

void FunctionCall::say(const FunctionProblem& problem, const std::string& what) const {
  if (given_.say == nullptr) return;
  const std::string text = function_.label(problem) + ": " + what;
  const intercept::Uncancelled uncancelled;  // it writes
  given_.say(given_.user, text.c_str());
}

void FunctionCall::say_run(const FunctionProblem& problem, std::uint32_t config) const {
  if (given_.says_runs != 0) say(problem, "runs " + function_.configs[config].to_string());
}

void FunctionCall::say_untuned(const FunctionProblem& problem) const {
  if (problem.why_untuned.empty()) return;
  std::string again;  // contextune_error() is this call's, too
  static_cast<void>(find_group(problem.communicator, again));
  say(problem, "runs its default: " + problem.why_untuned);
}

void FunctionCall::say_settled(const FunctionProblem& problem) const {
  const std::uint32_t config = function_.settled(problem);
  if (problem.is_disagreed.load(std::memory_order_relaxed))
    say(problem, std::string("was not tuned: ") + contextune_error());
  else if (config != CONTEXTUNE_UNSETTLED)
    say(problem, "was tuned, and runs " + function_.configs[config].to_string());
}

}  // namespace contextune::api
