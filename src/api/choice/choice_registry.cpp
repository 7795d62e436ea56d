#include "api/choice/choice_registry.hpp"

#include <exception>
#include <memory>
#include <utility>

#include <contextune/error.hpp>

#include "api/choice/choice_record.hpp"
#include "api/declared_rule.hpp"
#include "api/given_struct.hpp"
#include "api/last_error.hpp"
#include "api/process.hpp"
#include "api/tunable/site_timing.hpp"
#include "core/agreement/rank_list.hpp"
#include "gpu/image/program_file.hpp"
#include "intercept/nccl/collective_calls.hpp"

namespace contextune::api {
namespace {

using intercept::Runtime;

/// How many do it, where only a communicator was named. By whoever closes the choice.
void find_ranks(contextune_choice& choice) {
  if (choice.options.communicator == nullptr) return;
  const auto known = intercept::collective_calls().find(choice.options.communicator);
  if (choice.options.ranks == 0 && known && known->ranks > 0) choice.options.ranks = known->ranks;
  if (choice.options.ranks > 0) return;
  choice.is_apart.store(true, std::memory_order_release);
  if (Runtime* now = runtime()) {
    now->log().fallback(FallbackReason::NoRendezvous, {}, {},
                        "'" + choice.name +
                            "' runs its default: its communicator was not seen when it "
                            "was made, so nobody knows its ranks.");
  }
}

/// The ranks that do it, where its author has named them.
/// @throws Error if they cannot be read, or something else is said as well
void read_group(contextune_choice& choice) {
  const char* const text = std::exchange(choice.options.group, nullptr);
  if (text == nullptr || *text == '\0') return;
  const std::string of = "choice '" + choice.name + "': group is '" + text + "'";
  if (choice.options.communicator != nullptr)
    throw Error(of + ", and there is a communicator; give one of the two");
  choice.named_ranks = ranks_of_text(text);
  const auto count = static_cast<int>(choice.named_ranks.size());
  if (choice.options.ranks > 0 && choice.options.ranks != count)
    throw Error(of + ", and it is said to be done by " + std::to_string(choice.options.ranks) +
                " ranks; leave `ranks` out");
  choice.options.ranks = count;
}

}  // namespace

void say_runs_default(const char* choice, const char* file) noexcept {
  try {
    if (Runtime* const now = Runtime::get()) {
      now->log().fallback(FallbackReason::OtherCopy, {}, {},
                          "'" + std::string(choice) + "' runs its default: it was made by " + file +
                              ", which is not the copy of contextune that runs in this process.");
    }
  } catch (const std::exception&) {
    // No memory to say it.
  }
}

int fail_unready(const contextune_choice* choice, uint32_t number) noexcept {
  if (choice == nullptr || !choice->knows(number))
    return fail("the choice has no such problem; contextune_choice_problem() gives its numbers");
  if (active_api() != own_api())
    return fail(
        "another copy of contextune runs in this process; choices of this one are not tuned");
  const char* const why = state_reason();
  return fail(*why != '\0' ? why : "there is no memory for the problem of a choice");
}

}  // namespace contextune::api

using namespace contextune;
using namespace contextune::api;

contextune_choice* contextune_choice_create(const char* name,
                                            const contextune_choice_options* options) {
  try {
    if (name == nullptr || *name == '\0') throw Error("a choice is created without a name");
    if (options != nullptr && options->size == 0)
      throw Error("options of choice '" + std::string(name) +
                  "': set `size` to sizeof(contextune_choice_options)");
    auto choice = std::make_unique<contextune_choice>();
    choice->name = name;
    if (auto file = gpu::program_file_of(__builtin_return_address(0), 1))
      choice->build = std::move(file->build);
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
    const int calls = choice->options.calls_per_pass;
    if (calls < 0 || (calls > 1 && choice->options.repeatable == 0)) {
      throw Error("choice '" + choice->name + "': calls_per_pass is " + std::to_string(calls) +
                  (calls < 0 ? "; it must be at least 1"
                             : ", but it is not said to be repeatable; set repeatable as well"));
    }
    if (choice->options.buckets != nullptr) {
      try {
        choice->buckets = Buckets::parse(choice->options.buckets);
      } catch (const Error& error) {
        throw Error("choice '" + choice->name + "': " + error.what());
      }
    }
    choice->options.buckets = nullptr;
    if (choice->options.implementations != nullptr) choice->only = choice->options.implementations;
    choice->options.implementations = nullptr;
    read_group(*choice);
    if (choice->options.version != nullptr) choice->version = choice->options.version;
    choice->options.version = nullptr;
    Runtime* const now = Runtime::get();
    if (now != nullptr && (choice->is_shared() || choice->options.communicator != nullptr))
      now->ranks().expect();
    return choice.release();
  } catch (const std::exception& error) {
    fail(error.what());
    return nullptr;
  }
}

int contextune_choice_add(contextune_choice* choice, const contextune_implementation* given) {
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
    if (one.version != nullptr) added.version = one.version;
    choice->implementations.push_back(std::move(added));
    return 0;
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}

uint32_t contextune_choice_problem(contextune_choice* choice, const contextune_problem* problem) {
  if (choice == nullptr || problem == nullptr || choice->implementations.empty()) {
    fail("a choice without implementations is called; add one");
    return contextune_choice::Problems::none;
  }
  try {
    choice->called.store(true, std::memory_order_release);
    std::call_once(choice->closing, [choice] {
      choice->close();
      find_ranks(*choice);
    });
    contextune_problem whole = whole_of(problem);
    if (choice->options.ranks > 0) whole.ranks = choice->options.ranks;
    const std::uint32_t number = choice->number_of(whole);
    if (number == contextune_choice::Problems::none)
      fail("choice '" + choice->name +
           "' has too many problems; give it a coarser key, or buckets");
    return number;
  } catch (const std::exception& error) {
    fail(error.what());
    return contextune_choice::Problems::none;
  }
}

size_t contextune_choice_timings(contextune_choice* choice, uint32_t number,
                                 contextune_timing* timings, size_t most) {
  ChoiceProblem* const problem = choice == nullptr ? nullptr : choice->problem(number);
  if (problem == nullptr) {
    static_cast<void>(fail_unready(choice, number));
    return 0;
  }
  const ProblemSite* site = problem->sites.find_settled(current_device());
  if (site == nullptr) site = problem->sites.last();
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
    if (candidate.state == ChoiceCandidate::State::Uncompared)
      one.state = contextune_timing_unsupported;
    add_known(one, measured, i);
    add(one);
  }
  for (const std::uint32_t i : problem->unsupported)
    for (std::uint32_t c = 0; c < choice->implementations[i].configs.size(); ++c)
      add({i, c, 0, 0, contextune_timing_unsupported, 0});
  return count;
}
