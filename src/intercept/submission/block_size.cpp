#include "intercept/submission/block_size.hpp"

#include <algorithm>

namespace contextune::intercept {
namespace {

/// Long beside an event and a change of config, short beside what a program takes.
constexpr std::uint64_t target_ns = 1'000'000;
/// In a program that has used the GPU for a moment only, and may end after another one.
constexpr std::uint64_t short_target_ns = 100'000;
constexpr std::uint64_t short_blocks_of_elapsed = 100;
constexpr std::uint64_t most_targets = 3;
constexpr int most_lost_in_a_row = 16;

}  // namespace

void BlockSize::follow(std::uint32_t period) {
  entries_ = 0;
  entry_ns_ = length_of(period).ns;
}

BlockSize::Length& BlockSize::length_of(std::uint32_t period) {
  constexpr std::size_t most_periods = 64;  // that a program comes back to
  if (lengths_.size() >= most_periods && !lengths_.contains(period)) lengths_.clear();
  return lengths_[period];
}

void BlockSize::learn(const SubmissionBlock& block, double seconds, bool is_followed) {
  if (!(seconds > 0)) return;
  Length& length = length_of(block.period);
  length.ns = static_cast<std::uint64_t>(1e9 * seconds) / block.entries;
  if (length.first_ns == 0) length.first_ns = length.ns;
  if (!is_followed) return;
  entry_ns_ = length.ns;
  // The host alone did not see how long they are.
  if (entries_ > 1 && entries_ * entry_ns_ > most_targets * target_ns) entries_ = 0;
}

double BlockSize::work_of(const SubmissionBlock& block) {
  return static_cast<double>(block.entries * length_of(block.period).first_ns);
}

bool BlockSize::is_complete(const SubmissionBlock& block, std::uint64_t took,
                            std::uint64_t elapsed_ns, bool gathers,
                            std::uint64_t unbroken_entries) {
  const std::uint64_t target =
      std::clamp(elapsed_ns / short_blocks_of_elapsed, short_target_ns, target_ns);
  if (entries_ != 0 && block.entries < entries_) return false;
  // How long a block is, launches as written say: all others have as many entries.
  if (entries_ != 0 && !block.submission.is_as_written()) return true;
  if (took < target) return false;
  // A block that ends between two batches would hold a piece of one, which no other way has. But
  // two blocks have to fit between two breaks, or no pair of them is ever complete.
  const bool another_fits = unbroken_entries == 0 || 2 * (block.entries + 1) < unbroken_entries;
  if (gathers && block.launches % LaunchBatch::most_launches != 0 && took < most_targets * target &&
      another_fits) {
    return false;
  }
  entries_ = block.entries;
  return true;
}

bool BlockSize::loses(std::uint64_t unbroken_entries) noexcept {
  const bool is_too_long = entries_ > 1 && 2 * entries_ >= unbroken_entries;
  if (++lost_in_a_row_ > 1 || is_too_long) entries_ = 0;
  return lost_in_a_row_ >= most_lost_in_a_row;
}

}  // namespace contextune::intercept
