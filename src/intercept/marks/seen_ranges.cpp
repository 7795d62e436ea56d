#include "intercept/marks/seen_ranges.hpp"

#include <exception>

namespace contextune::intercept {
namespace {

constexpr std::size_t most_names = 16;
constexpr std::size_t longest_name = 80;

}  // namespace

void SeenRanges::saw(std::string_view domain, std::string_view name) noexcept {
  if (looks_left_.load(std::memory_order_relaxed) <= 0) return;
  looks_left_.fetch_sub(1, std::memory_order_relaxed);
  add(domain, name);
}

void SeenRanges::add(std::string_view domain, std::string_view name) noexcept {
  if (name.empty() || domain.size() + name.size() > longest_name) return;
  try {
    std::string shown(name);
    if (!domain.empty() || name.find('@') != name.npos) shown = std::string(domain) + "@" + shown;
    const std::lock_guard lock(mutex_);
    if (names_.size() < most_names) names_.insert(std::move(shown));
  } catch (const std::exception&) {
    // No memory: not shown, then.
  }
}

std::string SeenRanges::text() const {
  const std::lock_guard lock(mutex_);
  std::string all;
  for (const std::string& name : names_) all += (all.empty() ? "" : ", ") + name;
  return all;
}

}  // namespace contextune::intercept
