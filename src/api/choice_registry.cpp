#include "api/choice_registry.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>

#include <contextune/error.hpp>

#include "api/choice_record.hpp"
#include "api/choice_search.hpp"
#include "api/choice_sizes.hpp"
#include "api/declared_rule.hpp"
#include "api/last_error.hpp"
#include "api/named_values.hpp"
#include "api/process.hpp"
#include "core/statistics.hpp"
#include "intercept/collective_hooks.hpp"
#include "intercept/search.hpp"

namespace contextune::api {
namespace {

using intercept::Region;
using intercept::Runtime;

/// A struct of the caller's, which may be of an older form than ours.
template <class Struct>
Struct whole_of(const Struct* given) {
  Struct copy{};
  if (given != nullptr) std::memcpy(&copy, given, std::min(given->size, sizeof(Struct)));
  copy.size = sizeof(Struct);
  return copy;
}

/// This thread searches a choice: what an implementation calls meanwhile is part of it.
class Searching {
 public:
  Searching() noexcept { under_way = true; }
  ~Searching() { under_way = false; }
  Searching(const Searching&) = delete;
  Searching& operator=(const Searching&) = delete;
  static thread_local bool under_way;
};
thread_local bool Searching::under_way = false;

/// The region that a call is searched in; null: it is in none.
Region* region_around(Runtime& runtime) {
  Region* const region = runtime.current_region();
  return region == nullptr || region->name() == "process" ? nullptr : region;
}

/// Where it cannot be searched as it is. What is found later may still be.
int run_default(const ChoiceProblem& problem, const contextune_choice_run& call) noexcept {
  return run_candidate(problem, ChoiceProblem::by_default, call);
}

void settle_on_default(ChoiceProblem& problem) noexcept {
  problem.settled.store(ChoiceProblem::by_default, std::memory_order_release);
}

/// What is left may be one candidate only.
void note_screened(ChoiceProblem& problem) noexcept {
  problem.stage.store(ChoiceProblem::Stage::Screened, std::memory_order_release);
  if (problem.candidates.size() == 1) problem.settled.store(0, std::memory_order_release);
}

/// Searches a problem on `run`, by whoever has the search.
/// @return what the run returned that left its result; absent: none did
std::optional<int> search_alone(contextune_choice& choice, ChoiceProblem& problem, Runtime& runtime,
                                const contextune_choice_run& run, bool is_own) {
  if (!may_repeat(choice, run, is_own)) {
    runtime.fallback(FallbackReason::NotRepeatable, {},
                     "'" + choice.name +
                         "' is not measured outside of a region that is repeated: give it buffers "
                         "or inputs of its own, or say that it is repeatable.");
    return std::nullopt;
  }
  if (problem.stage.load(std::memory_order_acquire) == ChoiceProblem::Stage::New) {
    if (!screen(choice, problem, runtime, run, nullptr)) {
      settle_on_default(problem);
      return std::nullopt;
    }
    note_screened(problem);
  }
  if (problem.candidates.size() == 1) return std::nullopt;
  return measure_alone(choice, problem, runtime, run);
}

/// A call in a region that is to search it: the first one looks which candidates are right.
std::optional<int> search_in_region(contextune_choice& choice, ChoiceProblem& problem,
                                    Runtime& runtime, Region& region,
                                    const contextune_choice_run& call) {
  if (choice.is_shared() && !region.is_repeated()) {
    runtime.fallback(FallbackReason::NotRepeatable, region.name(),
                     "'" + choice.name +
                         "' is done by several ranks, which try the same only where the region's "
                         "body is repeated or `select` is immediate; it runs its default here.");
    return std::nullopt;
  }
  if (problem.stage.load(std::memory_order_acquire) == ChoiceProblem::Stage::New) {
    const std::lock_guard lock(choice.search_mutex);
    const Searching searching;
    if (problem.stage.load(std::memory_order_acquire) == ChoiceProblem::Stage::New) {
      if (!screen(choice, problem, runtime, call, &region)) {
        settle_on_default(problem);
        return std::nullopt;
      }
      note_screened(problem);
    }
  }
  return call_in_region(choice, problem, &region, call);
}

/// With what was chosen, for good.
int run_settled(const contextune_choice& choice, ChoiceProblem& problem, std::uint32_t settled,
                const contextune_choice_run& call, bool is_borrowed = false) noexcept {
  const int status = run_candidate(problem, settled, call);
  // Of several ranks none may do something else by itself.
  if (status == 0 || settled == ChoiceProblem::by_default || choice.is_shared()) return status;
  if (problem.candidates[settled].is_default()) return status;
  if (is_borrowed) {
    drop_borrowed(problem);
  } else {
    settle_on_default(problem);
  }
  if (Runtime* now = Runtime::get()) {
    try {
      now->fallback(FallbackReason::WinnerFailed, {},
                    "'" + problem.candidates[settled].full.to_string() + "' of '" + problem.label +
                        "' could not be run.");
    } catch (const std::exception&) {
      // No memory to say it.
    }
  }
  return run_default(problem, call);
}

int run_known(const contextune_choice& choice, ChoiceProblem& problem,
              const contextune_choice_run& call) noexcept {
  const std::uint32_t settled = problem.settled.load(std::memory_order_acquire);
  if (settled != ChoiceProblem::unsettled) return run_settled(choice, problem, settled, call);
  if (const auto of_other_size = known_of_other_size(choice, problem))
    return run_settled(choice, problem, *of_other_size, call, true);
  return run_default(problem, call);
}

/// How many do it, where only a communicator was named. By whoever closes the choice.
void find_ranks(contextune_choice& choice) {
  if (choice.options.communicator == nullptr) return;
  const auto known = intercept::collective_calls().find(choice.options.communicator);
  if (choice.options.ranks == 0 && known && known->ranks > 0) choice.options.ranks = known->ranks;
  if (choice.options.ranks > 0) return;
  choice.is_apart.store(true, std::memory_order_release);
  if (Runtime* now = runtime()) {
    now->fallback(FallbackReason::NoRendezvous, {},
                  "'" + choice.name +
                      "' runs its default: its communicator was not seen when it "
                      "was made, so nobody knows its ranks.");
  }
}

int call_unsettled(contextune_choice& choice, ChoiceProblem& problem,
                   const contextune_choice_run& call, const contextune_choice_run* alone) {
  Runtime* const now = active_api() == own_api() ? runtime() : nullptr;
  if (now == nullptr || !now->may_interrupt()) return run_default(problem, call);
  if (choice.is_apart.load(std::memory_order_acquire) || Searching::under_way)
    return run_default(problem, call);
  Region* const region = region_around(*now);
  if (region != nullptr && choice.options.select == contextune_select_deferred) {
    const auto done = search_in_region(choice, problem, *now, *region, call);
    return done ? *done : run_known(choice, problem, call);
  }
  if (const auto done = call_in_region(choice, problem, nullptr, call)) return *done;
  if (known_of_other_size(choice, problem)) return run_known(choice, problem, call);
  const std::lock_guard lock(choice.search_mutex);
  if (problem.settled.load(std::memory_order_acquire) == ChoiceProblem::unsettled) {
    const Searching searching;
    if (borrow_winner(choice, problem, *now, alone == nullptr ? call : *alone))
      return run_known(choice, problem, call);
    const auto done =
        search_alone(choice, problem, *now, alone == nullptr ? call : *alone, alone != nullptr);
    if (done && alone == nullptr) return *done;
  }
  return run_known(choice, problem, call);
}

}  // namespace

contextune_choice* create_choice(const char* name,
                                 const contextune_choice_options* options) noexcept {
  try {
    if (name == nullptr || *name == '\0') throw Error("a choice is created without a name");
    if (options != nullptr && options->size == 0)
      throw Error("options of choice '" + std::string(name) +
                  "': set `size` to sizeof(contextune_choice_options)");
    auto choice = std::make_unique<contextune_choice>();
    choice->name = name;
    choice->options = whole_of(options);
    if (choice->options.tolerance != nullptr && *choice->options.tolerance != '\0') {
      const auto read = ResultTolerance::parse(choice->options.tolerance);
      if (!read) {
        throw Error("choice '" + choice->name + "': tolerance is '" + choice->options.tolerance +
                    "'; it must be a type and a share, as f32:1e-5");
      }
      choice->tolerance = *read;
    }
    choice->options.tolerance = nullptr;
    if (choice->options.buckets != nullptr) {
      try {
        choice->buckets = Buckets::parse(choice->options.buckets);
      } catch (const Error& error) {
        throw Error("choice '" + choice->name + "': " + error.what());
      }
    }
    choice->options.buckets = nullptr;
    Runtime* const now = Runtime::get();
    if (now != nullptr && (choice->is_shared() || choice->options.communicator != nullptr))
      now->expect_ranks();
    return choice.release();
  } catch (const std::exception& error) {
    fail(error.what());
    return nullptr;
  }
}

int add_implementation(contextune_choice* choice, const contextune_implementation* given) noexcept {
  if (choice == nullptr || given == nullptr) return fail("there is no choice to add to");
  try {
    const contextune_implementation one = whole_of(given);
    const std::string of = "choice '" + choice->name + "': ";
    if (given->size == 0)
      throw Error(of + "set `size` of an implementation to sizeof(contextune_implementation)");
    if (choice->called.load(std::memory_order_acquire))
      throw Error(of + "an implementation is added after its first call; add all before");
    if (one.name == nullptr || *one.name == '\0')
      throw Error(of + "an implementation has no name; give it one");
    for (const Implementation& other : choice->implementations) {
      if (other.name == one.name)
        throw Error(of + "there are two implementations named '" + one.name + "'");
    }
    Implementation added;
    added.name = one.name;
    if (one.num_configs == 0) {
      added.configs.emplace_back();
    } else {
      added.configs =
          read_configs(of + "implementation '" + one.name + "'", one.configs, one.num_configs);
    }
    for (const Config& config : added.configs) {
      if (config.find("implementation") != nullptr)
        throw Error(of + "no parameter of '" + one.name + "' may be called implementation");
    }
    added.fusion = one.fusion;
    added.user = one.user;
    added.supports = one.supports;
    added.abandon = one.abandon;
    choice->implementations.push_back(std::move(added));
    return 0;
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}

uint32_t choice_problem(contextune_choice* choice, const contextune_problem* problem) noexcept {
  if (choice == nullptr || problem == nullptr || choice->implementations.empty()) {
    fail("a choice without implementations is called; add one");
    return contextune_choice::no_problem;
  }
  try {
    choice->called.store(true, std::memory_order_release);
    std::call_once(choice->closing, [choice] {
      choice->close();
      find_ranks(*choice);
    });
    if (choice->options.ranks > 0) {
      contextune_problem whole = whole_of(problem);
      whole.ranks = choice->options.ranks;
      return choice->number_of(whole);
    }
    return choice->number_of(*problem);
  } catch (const std::exception& error) {
    fail(error.what());
    return contextune_choice::no_problem;
  }
}

int call_choice(contextune_choice* choice, uint32_t number, const contextune_choice_run* call,
                const contextune_choice_run* alone) noexcept {
  ChoiceProblem* const problem = choice->problem(number);
  if (problem == nullptr) return call->run(call->user, 0, 0);
  const std::uint32_t settled = problem->settled.load(std::memory_order_acquire);
  if (settled != ChoiceProblem::unsettled) return run_settled(*choice, *problem, settled, *call);
  try {
    return call_unsettled(*choice, *problem, *call, alone);
  } catch (const std::exception&) {
    return run_default(*problem, *call);  // no memory, before anything was run
  }
}

contextune_choice_want choice_wants(contextune_choice* choice, uint32_t number) noexcept {
  const ChoiceProblem* const problem = choice->problem(number);
  if (problem == nullptr ||
      problem->settled.load(std::memory_order_acquire) != ChoiceProblem::unsettled ||
      choice->is_apart.load(std::memory_order_acquire)) {
    return contextune_want_call;
  }
  Runtime* const now = active_api() == own_api() ? runtime() : nullptr;
  if (now == nullptr) return contextune_want_call;
  const bool screened =
      problem->stage.load(std::memory_order_acquire) == ChoiceProblem::Stage::Screened;
  const bool in_region =
      choice->options.select == contextune_select_deferred && region_around(*now) != nullptr;
  if (in_region) return screened ? contextune_want_call : contextune_want_memory;
  if (screened && problem->find_settled(current_device()) != nullptr) return contextune_want_call;
  return known_of_other_size(*choice, *problem) ? contextune_want_call : contextune_want_alone;
}

int measure_choice(contextune_choice* choice, uint32_t number,
                   const contextune_choice_run* alone) noexcept {
  ChoiceProblem* const problem = choice == nullptr ? nullptr : choice->problem(number);
  if (problem == nullptr || alone == nullptr) return fail("there is nothing to be measured");
  Runtime* const now = active_api() == own_api() ? runtime() : nullptr;
  if (now == nullptr || !now->may_interrupt())
    return fail("nothing can be measured here: there is no GPU in use, or a capture is under way");
  try {
    const std::lock_guard lock(choice->search_mutex);
    const bool is_known =
        problem->settled.load(std::memory_order_acquire) != ChoiceProblem::unsettled ||
        problem->find_settled(current_device()) != nullptr;
    const Searching searching;
    if (!is_known) static_cast<void>(search_alone(*choice, *problem, *now, *alone, true));
    return 0;
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}

size_t choice_timings(contextune_choice* choice, uint32_t number, contextune_timing* timings,
                      size_t most) noexcept {
  ChoiceProblem* const problem = choice == nullptr ? nullptr : choice->problem(number);
  if (problem == nullptr) return 0;
  const TunableSite* site = problem->find_settled(current_device());
  if (site == nullptr) site = problem->sites.load(std::memory_order_acquire);
  const intercept::Site* const measured = site == nullptr ? nullptr : site->site;
  std::uint32_t winner = problem->settled.load(std::memory_order_acquire);
  if (winner == ChoiceProblem::unsettled && measured != nullptr) winner = measured->settled();
  const auto is_winner = [&](std::uint32_t i) {
    return i == winner ||
           (winner == ChoiceProblem::by_default && problem->candidates[i].is_default());
  };
  size_t count = 0;
  const auto add = [&](const contextune_timing& one) {
    if (count < most) timings[count] = one;
    ++count;
  };
  for (std::uint32_t i = 0; i < problem->candidates.size(); ++i) {
    const ChoiceCandidate& candidate = problem->candidates[i];
    contextune_timing one{candidate.implementation,  candidate.config,    0, 0,
                          contextune_timing_missing, is_winner(i) ? 1 : 0};
    if (candidate.state == ChoiceCandidate::State::Wrong) one.state = contextune_timing_wrong;
    if (candidate.state == ChoiceCandidate::State::Failed) one.state = contextune_timing_failed;
    try {
      std::vector<double> samples;
      if (measured != nullptr && measured->search != nullptr)
        samples = measured->search->samples(*measured, i);
      if (!samples.empty()) {
        one.samples = samples.size();
        one.seconds = median(samples);
        one.state = contextune_timing_measured;
      }
    } catch (const std::exception&) {
      // No memory to look at them.
    }
    add(one);
  }
  for (const std::uint32_t i : problem->unsupported)
    for (std::uint32_t c = 0; c < choice->implementations[i].configs.size(); ++c)
      add({i, c, 0, 0, contextune_timing_unsupported, 0});
  return count;
}

}  // namespace contextune::api
