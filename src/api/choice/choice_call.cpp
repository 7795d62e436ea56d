// Calls of choices: choice_registry.hpp.
#include <exception>
#include <mutex>
#include <optional>
#include <string>

#include "api/choice/choice_record.hpp"
#include "api/choice/choice_registry.hpp"
#include "api/choice/choice_search.hpp"
#include "api/choice/choice_sizes.hpp"
#include "api/failure_text.hpp"
#include "api/last_error.hpp"
#include "api/process.hpp"
#include "intercept/site/site.hpp"

namespace contextune::api {
namespace {

using intercept::Region;
using intercept::Runtime;

/// The problem that this thread asked contextune_choice_wants() about last, kept for the call that
/// follows: finding the current device costs a call of the driver. Trivial, so that a thread may
/// end at any time.
struct Asked {
  const contextune_choice* choice = nullptr;
  std::uint32_t number = 0;
  ChoiceProblem* problem = nullptr;
  std::uint32_t of_other_size = ChoiceProblem::unsettled;  ///< it runs that
};
thread_local Asked asked;

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

/// Runs the default where the problem cannot be searched as it is. A winner that is found later may
/// still run.
int run_default(const ChoiceProblem& problem, const contextune_choice_run& call) {
  return run_candidate(problem, ChoiceProblem::by_default, call);
}

void settle_on_default(ChoiceProblem& problem) noexcept {
  problem.settled.store(ChoiceProblem::by_default, std::memory_order_release);
}

/// Screening may leave one candidate only, which settles the problem.
void note_screened(ChoiceProblem& problem) noexcept {
  problem.stage.store(ChoiceProblem::Stage::Screened, std::memory_order_release);
  if (problem.candidates.size() == 1) problem.settled.store(0, std::memory_order_release);
}

/// Ranks would have to wait for one another, with every implementation, before one of them may be
/// relied on; see FallbackReason::LiveChoice.
void decline_live(const contextune_choice& choice, Runtime& runtime, const std::string& region) {
  runtime.log().fallback(
      FallbackReason::LiveChoice, region, {},
      "'" + choice.name +
          "' runs what was found elsewhere, else its default: the several ranks that make it "
          "cannot find out here what each of its implementations does.");
}

/// Whether the operator lets anything be searched outside of the program's own regions.
bool may_search_alone(const contextune_choice& choice, Runtime& runtime) {
  const Mode mode = runtime.options().mode;
  if (!choice.is_shared() || mode == Mode::Auto || mode == Mode::Body) return true;
  decline_live(choice, runtime, {});
  return false;
}

/// Searches a problem on `run`, by whoever has the search.
/// @return what the run returned that left its result; absent: none did
std::optional<int> search_alone(contextune_choice& choice, ChoiceProblem& problem, Runtime& runtime,
                                const contextune_choice_run& run, bool is_own) {
  if (!may_repeat(choice, run, is_own)) {
    runtime.log().fallback(
        FallbackReason::NotRepeatable, {}, {},
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
    // A winner agreed on elsewhere was agreed on before this call, on all ranks.
    if (const auto done = call_in_region(choice, problem, nullptr, call)) return done;
    decline_live(choice, runtime, region.name());
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

/// Whether that outcome of what was chosen is the call's.
bool is_outcome(int status, const contextune_choice& choice, const ChoiceProblem& problem,
                std::uint32_t settled) noexcept {
  // No rank of several may do something else by itself.
  return status == 0 || settled == ChoiceProblem::by_default || choice.is_shared() ||
         problem.candidates[settled].is_default();
}

/// After what was chosen could not be run: the default is, for good.
int run_default_instead(ChoiceProblem& problem, std::uint32_t settled,
                        const contextune_choice_run& call, bool is_borrowed) {
  if (is_borrowed) {
    drop_borrowed(problem);
  } else {
    settle_on_default(problem);
  }
  if (Runtime* now = Runtime::get()) {
    try {
      const std::string why = taken_failure_clause();
      now->log().fallback(FallbackReason::WinnerFailed, {}, {},
                          "'" + problem.candidates[settled].full.to_string() + "' of '" +
                              problem.label + "' could not be run" + (why.empty() ? "." : why));
    } catch (const std::exception&) {
      // No memory to say it.
    }
  }
  return run_default(problem, call);
}

/// With what was chosen, for good.
int run_settled(const contextune_choice& choice, ChoiceProblem& problem, std::uint32_t settled,
                const contextune_choice_run& call, bool is_borrowed = false) {
  const int status = run_candidate(problem, settled, call);
  if (is_outcome(status, choice, problem, settled)) return status;
  return run_default_instead(problem, settled, call, is_borrowed);
}

/// What is run from now on where this thread is. Absent: that is to be searched.
std::optional<std::uint32_t> settled_candidate(const contextune_choice& choice,
                                               const ChoiceProblem& problem) noexcept {
  const std::uint32_t settled = problem.settled.load(std::memory_order_acquire);
  if (settled != ChoiceProblem::unsettled) return settled;
  if (problem.candidates.size() == 1) return 0;
  Runtime* const now = runtime();
  if (choice.is_apart.load(std::memory_order_acquire) || now == nullptr)
    return ChoiceProblem::by_default;
  const Region* const region =
      choice.options.select == contextune_select_deferred ? region_around(*now) : nullptr;
  const ProblemSite* const site = region == nullptr ? problem.sites.find_settled(current_device())
                                                    : problem.sites.find(region, current_device());
  if (site != nullptr && site->site != nullptr && site->region->finished()) {
    const std::uint32_t winner = site->site->settled();
    return winner < problem.candidates.size() ? winner : ChoiceProblem::by_default;
  }
  return region == nullptr ? known_of_other_size(choice, problem) : std::nullopt;
}

int run_known(const contextune_choice& choice, ChoiceProblem& problem,
              const contextune_choice_run& call) noexcept {
  const std::uint32_t settled = problem.settled.load(std::memory_order_acquire);
  if (settled != ChoiceProblem::unsettled) return run_settled(choice, problem, settled, call);
  if (const auto of_other_size = known_of_other_size(choice, problem))
    return run_settled(choice, problem, *of_other_size, call, true);
  return run_default(problem, call);
}

int call_unsettled(contextune_choice& choice, ChoiceProblem& problem,
                   const contextune_choice_run& call, const contextune_choice_run* alone) {
  Runtime* const now = runtime();
  if (now == nullptr || !now->may_interrupt()) return run_default(problem, call);
  if (choice.is_apart.load(std::memory_order_acquire) || Searching::under_way)
    return run_default(problem, call);
  Region* const region = region_around(*now);
  if (region != nullptr && choice.options.select == contextune_select_deferred) {
    const auto done = search_in_region(choice, problem, *now, *region, call);
    return done ? *done : run_known(choice, problem, call);
  }
  if (problem.sites.last() != nullptr) {
    if (const auto done = call_in_region(choice, problem, nullptr, call)) return *done;
  }
  if (const auto of_other_size = known_of_other_size(choice, problem))
    return run_settled(choice, problem, *of_other_size, call, true);
  if (!may_search_alone(choice, *now)) return run_known(choice, problem, call);
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

int measure(contextune_choice& choice, ChoiceProblem& problem, Runtime& runtime,
            const contextune_choice_run& alone) {
  try {
    const std::lock_guard lock(choice.search_mutex);
    const bool is_known =
        problem.settled.load(std::memory_order_acquire) != ChoiceProblem::unsettled ||
        problem.sites.find_settled(current_device()) != nullptr;
    const Searching searching;
    if (!is_known && may_search_alone(choice, runtime))
      static_cast<void>(search_alone(choice, problem, runtime, alone, true));
    return 0;
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}

}  // namespace
}  // namespace contextune::api

using namespace contextune::api;

int contextune_choice_call(contextune_choice* choice, uint32_t number,
                           const contextune_choice_run* call, const contextune_choice_run* alone) {
  Asked& about = asked;
  const bool was_asked = about.choice == choice && about.number == number;
  about.choice = nullptr;  // the next call may be on another device
  ChoiceProblem* const problem = was_asked ? about.problem : choice->problem(number);
  if (problem == nullptr) return call->run(call->user, 0, 0);
  std::uint32_t known = problem->settled.load(std::memory_order_acquire);
  const bool is_borrowed = known == ChoiceProblem::unsettled && was_asked;
  if (is_borrowed) known = about.of_other_size;
  if (known != ChoiceProblem::unsettled) {
    const int status = run_at_once(*problem, known, *call);
    if (is_outcome(status, *choice, *problem, known)) return status;
  }
  return with_thread_end([&] {
    if (known != ChoiceProblem::unsettled)
      return run_default_instead(*problem, known, *call, is_borrowed);
    try {
      return call_unsettled(*choice, *problem, *call, alone);
    } catch (const std::exception&) {
      return run_default(*problem, *call);  // no memory, before anything was run
    }
  });
}

contextune_choice_want contextune_choice_wants(contextune_choice* choice, uint32_t number) {
  ChoiceProblem* const problem = choice->problem(number);
  Asked& about = asked;
  about = {problem == nullptr ? nullptr : choice, number, problem, ChoiceProblem::unsettled};
  if (problem == nullptr ||
      problem->settled.load(std::memory_order_acquire) != ChoiceProblem::unsettled ||
      choice->is_apart.load(std::memory_order_acquire)) {
    return contextune_want_call;
  }
  Runtime* const now = runtime();
  if (now == nullptr) return contextune_want_call;
  const bool screened =
      problem->stage.load(std::memory_order_acquire) == ChoiceProblem::Stage::Screened;
  const bool in_region =
      choice->options.select == contextune_select_deferred && region_around(*now) != nullptr;
  if (in_region) return screened ? contextune_want_call : contextune_want_memory;
  if (screened && problem->sites.last() != nullptr &&
      problem->sites.find_settled(current_device()) != nullptr)
    return contextune_want_call;
  const auto of_other_size = known_of_other_size(*choice, *problem);
  if (of_other_size) about.of_other_size = *of_other_size;
  return of_other_size ? contextune_want_call : contextune_want_alone;
}

int contextune_choice_settled(contextune_choice* choice, uint32_t number, size_t* implementation,
                              size_t* config) {
  if (choice == nullptr || !choice->knows(number)) return fail_unready(choice, number);
  if (implementation == nullptr || config == nullptr)
    return fail("there is no place for the numbers of what a choice has settled on");
  *implementation = *config = 0;
  ChoiceProblem* const problem = choice->problem(number);
  const auto candidate = problem == nullptr ? std::optional(ChoiceProblem::by_default)
                                            : settled_candidate(*choice, *problem);
  if (!candidate) return 0;
  if (*candidate == ChoiceProblem::by_default) return 1;
  *implementation = problem->candidates[*candidate].implementation;
  *config = problem->candidates[*candidate].config;
  return 1;
}

int64_t contextune_choice_settled_number(contextune_choice* choice, uint32_t number) {
  std::size_t implementation = 0, config = 0;
  if (contextune_choice_settled(choice, number, &implementation, &config) != 1) return -1;
  return static_cast<int64_t>(implementation) << 32 | static_cast<int64_t>(config);
}

int contextune_choice_measure(contextune_choice* choice, uint32_t number,
                              const contextune_choice_run* alone) {
  ChoiceProblem* const problem = choice == nullptr ? nullptr : choice->problem(number);
  if (problem == nullptr) return fail_unready(choice, number);
  if (alone == nullptr) return fail("there is nothing to be measured");
  Runtime* const now = runtime();
  if (now == nullptr || !now->may_interrupt()) {
    return fail(now == nullptr ? state_reason()
                               : "nothing can be measured here: a capture is under way");
  }
  if (Searching::under_way) return fail("this thread is measuring already");
  return with_thread_end([&] { return measure(*choice, *problem, *now, *alone); });
}
