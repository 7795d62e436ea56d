#include "api/choice/choice_sizes.hpp"

#include <algorithm>

#include "api/choice/choice_search.hpp"
#include "api/process.hpp"
#include "intercept/site/site.hpp"

namespace contextune::api {
namespace {

constexpr std::uint32_t default_within = 4;

/// The candidate that a search of the problem's own has chosen.
const ChoiceCandidate* winner_of(const ChoiceProblem& problem, int device) noexcept {
  if (problem.candidates.size() < 2) return nullptr;  // nothing was compared with anything
  std::uint32_t winner = problem.settled.load(std::memory_order_acquire);
  if (winner == ChoiceProblem::unsettled) {
    if (const ProblemSite* site = problem.sites.find_settled(device))
      winner = site->site->settled();
  }
  return winner < problem.candidates.size() ? &problem.candidates[winner] : nullptr;
}

/// The same way to do another problem; null: it is not to be run there.
ChoiceCandidate* same_in(ChoiceProblem& problem, const ChoiceCandidate& wanted) noexcept {
  const auto found = std::ranges::find_if(problem.candidates, [&](const ChoiceCandidate& one) {
    return one.implementation == wanted.implementation && one.config == wanted.config &&
           one.state == ChoiceCandidate::State::Open;
  });
  return found == problem.candidates.end() ? nullptr : &*found;
}

ChoiceCandidate* nearest_winner(contextune_choice& choice, ChoiceProblem& problem) {
  const std::uint32_t given = choice.options.nearest_within;
  const std::uint32_t within = given == 0 ? default_within : given;
  const std::uint64_t size = problem.bytes->typical();
  ChoiceCandidate* nearest = nullptr;
  std::uint64_t nearest_size = 0;
  for (const ChoiceProblem* one : choice.of_other_sizes(problem)) {
    const std::uint64_t other = one->bytes->typical();
    if (!are_within(other, size, within)) continue;
    if (nearest != nullptr && !is_nearer(other, nearest_size, size)) continue;
    const ChoiceCandidate* const winner = winner_of(*one, current_device());
    ChoiceCandidate* const own = winner == nullptr ? nullptr : same_in(problem, *winner);
    if (own == nullptr) continue;
    nearest = own;
    nearest_size = other;
  }
  return nearest;
}

}  // namespace

std::optional<std::uint32_t> known_of_other_size(const contextune_choice& choice,
                                                 const ChoiceProblem& problem) noexcept {
  if (!problem.bytes) return std::nullopt;
  if (choice.options.unseen == contextune_unseen_default) return ChoiceProblem::by_default;
  const std::uint32_t borrowed = problem.borrowed.load(std::memory_order_acquire);
  if (borrowed == ChoiceProblem::unsettled) return std::nullopt;
  // A nearer size may have been measured since. Several ranks do not look again: one of them might
  // no longer be able to tell the others.
  const bool is_current = problem.borrowed_as_of.load(std::memory_order_relaxed) ==
                          choice.num_settled.load(std::memory_order_relaxed);
  if (!is_current && !choice.is_shared() && borrowed != ChoiceProblem::by_default)
    return std::nullopt;
  return borrowed;
}

bool borrow_winner(contextune_choice& choice, ChoiceProblem& problem, intercept::Runtime& runtime,
                   const contextune_choice_run& run) {
  if (choice.options.unseen != contextune_unseen_nearest || !problem.bytes) return false;
  // Read before the search: a problem that settles meanwhile has this looked up again.
  const std::uint32_t as_of = choice.num_settled.load(std::memory_order_relaxed);
  while (ChoiceCandidate* const one = nearest_winner(choice, problem)) {
    if (!one->is_right && !one->is_default()) {
      if (!screen(choice, problem, runtime, run, nullptr, one)) {
        problem.settled.store(ChoiceProblem::by_default, std::memory_order_release);
        return false;
      }
      if (one->state != ChoiceCandidate::State::Open) continue;
    }
    problem.borrowed_as_of.store(as_of, std::memory_order_relaxed);
    problem.borrowed.store(static_cast<std::uint32_t>(one - problem.candidates.data()),
                           std::memory_order_release);
    return true;
  }
  problem.borrowed.store(ChoiceProblem::unsettled, std::memory_order_release);
  return false;
}

void drop_borrowed(ChoiceProblem& problem) noexcept {
  problem.borrowed.store(ChoiceProblem::by_default, std::memory_order_release);
}

}  // namespace contextune::api
