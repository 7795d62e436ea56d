#include "api/tunable_record.hpp"

#include "api/named_values.hpp"

namespace contextune::api {

TunableSite* TunableProblem::find(const intercept::Region* region, int device) const noexcept {
  for (TunableSite* site = sites.load(std::memory_order_acquire); site != nullptr;
       site = site->next)
    if (site->region == region && site->device == device) return site;
  return nullptr;
}

TunableSite* TunableProblem::find_settled(int device) const noexcept {
  for (TunableSite* site = sites.load(std::memory_order_acquire); site != nullptr;
       site = site->next)
    if (site->device == device && site->site != nullptr && site->region->finished()) return site;
  return nullptr;
}

}  // namespace contextune::api

std::uint32_t contextune_tunable::number_of(const std::string& key_text) {
  const std::lock_guard lock(mutex_);
  if (const auto found = numbers_.find(key_text); found != numbers_.end()) return found->second;
  const std::uint32_t number = num_problems_.load(std::memory_order_relaxed);
  if (number == max_problems) return no_problem;
  contextune::Key key = contextune::api::parse_key(key_text);
  const auto chunk = static_cast<std::size_t>(std::bit_width(number + std::uint64_t{1})) - 1;
  if (chunks_[chunk] == nullptr) {
    chunks_[chunk] = std::make_unique<contextune::api::TunableProblem[]>(std::size_t{1} << chunk);
  }
  contextune::api::TunableProblem& problem =
      chunks_[chunk][number + std::uint64_t{1} - (std::uint64_t{1} << chunk)];
  problem.key = std::move(key);
  problem.text = key_text;
  numbers_.emplace(key_text, number);
  num_problems_.store(number + 1, std::memory_order_release);
  return number;
}
