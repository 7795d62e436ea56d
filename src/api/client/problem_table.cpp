#include <contextune/problem_table.hpp>

namespace contextune::detail {
namespace {

constexpr std::size_t first_slots = 64;

}  // namespace

ProblemTable::Slots::Slots(std::size_t count)
    : mask(count - 1), at(std::make_unique<std::atomic<KnownProblem*>[]>(count)) {
  for (std::size_t i = 0; i < count; ++i) at[i].store(nullptr, std::memory_order_relaxed);
}

ProblemTable::ProblemTable() {
  all_slots_.push_back(std::make_unique<Slots>(first_slots));
  slots_.store(all_slots_.back().get(), std::memory_order_release);
}
ProblemTable::~ProblemTable() = default;

void ProblemTable::insert(const Slots& slots, KnownProblem& problem) noexcept {
  for (std::uint64_t at = problem.at.words.hash();; ++at) {
    std::atomic<KnownProblem*>& slot = slots.at[at & slots.mask];
    if (slot.load(std::memory_order_relaxed) != nullptr) continue;
    return slot.store(&problem, std::memory_order_release);
  }
}

void ProblemTable::grow() {
  const Slots& old = *all_slots_.back();
  auto larger = std::make_unique<Slots>(2 * (old.mask + 1));
  for (std::uint64_t i = 0; i <= old.mask; ++i) {
    KnownProblem* const problem = old.at[i].load(std::memory_order_relaxed);
    if (problem != nullptr) insert(*larger, *problem);
  }
  all_slots_.push_back(std::move(larger));
  slots_.store(all_slots_.back().get(), std::memory_order_release);
}

KnownProblem& ProblemTable::add(std::unique_ptr<KnownProblem> problem) {
  const std::lock_guard lock(mutex_);
  if (KnownProblem* const known = find(problem->at)) return *known;
  // Half of the slots stay empty, so that every search ends soon.
  const std::size_t in_use = in_use_.load(std::memory_order_relaxed) + 1;
  if (2 * in_use > all_slots_.back()->mask) grow();
  problems_.push_back(std::move(problem));
  insert(*all_slots_.back(), *problems_.back());
  in_use_.store(in_use, std::memory_order_relaxed);
  return *problems_.back();
}

}  // namespace contextune::detail
