#include "api/choice/choice_search.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <string>

#include "api/choice/choice_ranks.hpp"
#include "api/choice/choice_screen.hpp"
#include "api/process.hpp"
#include "api/region/entry.hpp"
#include "api/region/repetition_rule.hpp"
#include "core/value/stable_hash.hpp"
#include "intercept/host/uncancelled.hpp"
#include "intercept/site/site.hpp"
#include "intercept/tuner/open_pass.hpp"
#include "intercept/tuner/screening.hpp"
#include "intercept/tuner/search.hpp"

namespace contextune::api {
namespace {

using intercept::Region;
using intercept::Runtime;
using intercept::TunableCall;

/// The problem's site in a region that it was not called in yet.
ProblemSite* add_site(const contextune_choice& choice, ChoiceProblem& problem, Region& region,
                      int device) {
  intercept::TunableSpec spec;
  spec.name = choice.site_name;
  spec.key = choice.site_key(problem);
  if (device > 0) spec.key.add("device", device);
  for (std::uint32_t i = 0; i < problem.candidates.size(); ++i) {
    spec.configs.push_back(problem.candidates[i].full);
    if (problem.candidates[i].state != ChoiceCandidate::State::Open) spec.unusable.push_back(i);
  }
  if (choice.options.n_warmup > 0) spec.n_warmup = choice.options.n_warmup;
  if (choice.options.n_repeat > 0) spec.n_repeat = choice.options.n_repeat;
  spec.timed_as_span = true;
  spec.declaration = choice.declaration;
  if (choice.version.empty()) spec.build = choice.build;
  intercept::Site* site = region.tunable(spec);
  // Another choice of that name and problem may have other candidates: numbers mean something else.
  if (site != nullptr && site->configs != spec.configs) site = nullptr;
  if (site != nullptr) {
    for (std::uint32_t i = 0; i < problem.candidates.size(); ++i)
      if (problem.candidates[i].is_right) site->search->screening().were_right({{site, i}});
    for (const std::uint32_t i : spec.unusable)
      if (problem.candidates[i].state == ChoiceCandidate::State::Wrong)
        site->search->screening().was_wrong(*site, i);
  }
  return problem.sites.add(region, device, site);
}

/// A hash of what all ranks must have before them to try the same at the same time.
std::uint64_t hash_of(const ChoiceProblem& problem, const std::string& region, bool screens,
                      const ChoiceCandidate* only) {
  StableHash hash;
  hash.add(problem.label);
  hash.add(region);
  hash.add(static_cast<std::uint64_t>(screens));
  for (const ChoiceCandidate& one : problem.candidates) hash.add(one.full.to_string());
  if (only != nullptr) hash.add(only->full.to_string());
  return hash.value();
}

std::string name_of(const Region* region) {
  return region == nullptr ? std::string() : region->name();
}

/// In which it is measured alone: "choice all_reduce{bytes=32769-65536}".
std::string own_region_of(const contextune_choice& choice, const ChoiceProblem& problem) {
  const std::string key = choice.site_key(problem).to_string();
  return "choice " + choice.site_name + (key.empty() ? "" : "{" + key + "}");
}

/// Sets the options of the problem's own region.
void set_up(contextune_entry& entry, const contextune_choice& choice, const Runtime& runtime,
            const contextune_choice_run& run) {
  static_cast<void>(set_region_option(&entry, "repeatable", "true"));
  // The time of an implementation would else include how late the other ranks came to it.
  static_cast<void>(set_region_option(&entry, "align", "sample"));
  if (choice.is_shared()) {
    make_passes_together(
        &entry, choice.group.is_whole_job ? std::vector<std::uint32_t>() : choice.group.ranks);
    // Ranks are not held, so the host's time counts in what is compared: with CUPTI, and half a
    // second after it, NCCL's calls take the host 10 to 20 us in place of 6 (two H200s). Where
    // launches are not seen, only CUPTI finds work in other streams than the default one.
    if (choice.options.calls_per_pass > 1 && runtime.sees_launches()) time_rows(&entry);
  }
  if (choice.options.repeatable != 0) return;
  for (std::size_t i = 0; i < run.num_memory; ++i)
    static_cast<void>(add_restore_buffer(&entry, run.memory[i].pointer, run.memory[i].size_bytes));
}

const intercept::Site* site_in(const ChoiceProblem& problem, const Region* region) {
  const ProblemSite* const at =
      region == nullptr ? nullptr : problem.sites.find(region, current_device());
  return at == nullptr ? nullptr : at->site;
}

/// Whether the pass under way has one time, not one for each call. Calls that follow one another
/// can then cost the host almost as little as they do once they are settled. It counts where the
/// GPU waits for the host: NCCL's all-reduce took 12 to 14 us of 8 KiB and of 256 KiB (four H200s).
bool is_timed_as_a_whole(const ChoiceProblem& problem, const Region* region) {
  const intercept::Site* const site = site_in(problem, region);
  return site != nullptr && site->search->watch() == intercept::Watch::Span;
}

/// Makes an untimed call before calls in a row, with the config that they will have. Where these
/// are compared as a whole, they would begin on an idle GPU else, and a call whose launch takes the
/// host long would pay for that once a pass, which it never does in a loop. Where each is timed,
/// the first would hold the time in which its rank waits for the others: an all-reduce of 5.5 us in
/// passes of ten took 20 us in half of all searches (two H200s), and lost to one of 9 us.
void lead_in(const ChoiceProblem& problem, const Region* region, const contextune_choice_run& run) {
  const intercept::Site* const site = site_in(problem, region);
  if (site == nullptr || !site->search->pass().counts()) return;
  const std::uint32_t config = site->planned();
  if (config >= problem.candidates.size()) return;
  const TunableCall aside{TunableCall::Aside{}};
  static_cast<void>(run_candidate(problem, config, run));  // the calls that count fail as well
}

}  // namespace

bool may_repeat(const contextune_choice& choice, const contextune_choice_run& run,
                bool is_own) noexcept {
  return repetition_of(StoredKind::Choice, is_own || choice.options.repeatable != 0,
                       run.num_memory != 0) == Repetition::Said;
}

std::optional<int> call_in_region(contextune_choice& choice, ChoiceProblem& problem, Region* region,
                                  const contextune_choice_run& call, int times) {
  const int device = current_device();
  ProblemSite* site = region == nullptr ? problem.sites.find_settled(device) : nullptr;
  if (region != nullptr) {
    site = problem.sites.find(region, device);
    try {
      if (site == nullptr) site = add_site(choice, problem, *region, device);
    } catch (const std::exception&) {
      return std::nullopt;  // no memory to search it
    }
  }
  if (site == nullptr || site->site == nullptr) return std::nullopt;
  TunableCall at(site->site);
  const bool known = at.config() < problem.candidates.size();
  const std::uint32_t number = known ? at.config() : ChoiceProblem::by_default;
  int status = 0;
  std::string why;
  // All of them, whichever fails: the other ranks make as many.
  for (int i = 0; i < times; ++i) {
    const int one = run_candidate(problem, number, call);
    if (one == 0 || status != 0) continue;
    status = one;
    why = take_failure();
  }
  // This rank alone cannot do again what the others do at this moment. Where ranks do it together,
  // the pass has failed, and its body is repeated with something else.
  const bool launched = status == 0 || number == 0;
  if (!at.end(launched, why, static_cast<std::uint32_t>(times)) || choice.is_shared())
    return status;
  return run_candidate(problem, ChoiceProblem::by_default, call);
}

bool screen(contextune_choice& choice, ChoiceProblem& problem, Runtime& runtime,
            const contextune_choice_run& run, Region* region, const ChoiceCandidate* only) {
  const intercept::Uncancelled uncancelled;
  ChoiceRanks ranks(choice, problem, runtime);
  try {
    const bool compares = ChoiceScreen::has_outputs(run);
    if (!ranks.are_alike(hash_of(problem, name_of(region), compares, only),
                         "set of implementations, or is in another region")) {
      return false;
    }
    if (!compares) {
      runtime.log().fallback(FallbackReason::NoOutputs, {}, {},
                             "The implementations of '" + choice.name +
                                 "' are not compared with its default, because its outputs are not "
                                 "named.");
      return true;
    }
    const bool is_alone = problem.candidates.size() == 1 && problem.candidates.front().is_default();
    if (is_alone) return true;
    const std::string searched_in =
        region != nullptr ? region->name() : own_region_of(choice, problem);
    return ChoiceScreen(choice, problem, runtime, ranks, run, searched_in, uncancelled).run(only);
  } catch (const std::exception& error) {
    runtime.log().fault("choice '" + problem.label + "': " + error.what() +
                        "; it runs its default");
    ranks.leave("one of them could not compare results");
    return false;
  }
}

int measure_alone(contextune_choice& choice, ChoiceProblem& problem, Runtime& runtime,
                  const contextune_choice_run& run) {
  const intercept::Uncancelled uncancelled;
  ChoiceRanks ranks(choice, problem, runtime);
  struct AtThreadEnd {
    ChoiceRanks& ranks;
    bool ends = true;
    ~AtThreadEnd() {
      if (ends) ranks.thread_ends();
    }
  } at_thread_end{ranks};
  int status = 0;
  std::uint32_t winner = ChoiceProblem::by_default;
  bool finished = false;
  bool agreed = false;
  std::atomic<bool> refused{false};
  const auto find_winner = [&](const Region* region) {
    finished = region != nullptr && region->finished();
    const ProblemSite* site = finished ? problem.sites.find(region, current_device()) : nullptr;
    if (site != nullptr && site->site != nullptr) winner = site->site->settled();
  };
  const auto agree = [&] {
    // Whoever has it from here on has it on all ranks.
    if (!ranks.are_alike(winner, "winner")) winner = ChoiceProblem::by_default;
    agreed = true;
  };
  try {
    /// Ended where the call is left, too.
    struct OpenEntry {
      contextune_entry entry{};
      ~OpenEntry() { end_region(&entry); }
    } here;
    contextune_entry& entry = here.entry;
    begin_region_as(&entry, own_region_of(choice, problem),
                    {StoredKind::Choice, choice.name, choice.site_name, choice.site_key(problem)},
                    refused);
    set_up(entry, choice, runtime, run);
    Region* region = nullptr;
    while (next_pass(&entry) != 0) {
      region = runtime.current_region();
      // In live mode a pass is the caller's own call.
      const bool repeats = region != nullptr && region->is_repeated();
      if (choice.is_shared() && region_tunes(&entry) == 0) {
        // The last run: no rank begins it before all have put back what the last pass changed, for
        // the reason in ChoiceScreen::compare_all.
        find_winner(region);
        agree();
      }
      const int calls = repeats ? std::max(choice.options.calls_per_pass, 1) : 1;
      const intercept::Uncancelled::Lifted lifted(uncancelled);
      if (calls > 1) lead_in(problem, region, run);
      const int at_once = is_timed_as_a_whole(problem, region) ? calls : 1;
      for (int i = 0; i < calls;) {
        const bool parted = agreed && winner == ChoiceProblem::by_default;
        const int times = std::min(at_once, calls - i);
        const auto done =
            parted ? std::nullopt : call_in_region(choice, problem, region, run, times);
        status = done ? *done : run_candidate(problem, ChoiceProblem::by_default, run);
        i += done ? times : 1;
      }
    }
    end_region(&entry);
    if (!agreed) find_winner(region);
  } catch (const std::exception& error) {
    runtime.log().fault("choice '" + problem.label + "': " + error.what() +
                        "; it runs its default");
  }
  at_thread_end.ends = false;
  if (choice.is_shared() && !agreed) agree();
  // In live mode its region is searched over many calls.
  if (finished || refused || choice.is_shared()) {
    problem.settled.store(winner, std::memory_order_release);
    choice.num_settled.fetch_add(1, std::memory_order_relaxed);
  }
  return status;
}

}  // namespace contextune::api
