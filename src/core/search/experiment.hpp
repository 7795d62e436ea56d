#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/trials/region_sample.hpp"
#include "core/trials/statistics.hpp"

namespace contextune {

/// A batch of passes with given configs that are run one after the other and whose results may come
/// in any order. Complete when all have come or are known to be lost.
class Experiment {
 public:
  /// @param num_ignored how many of the first passes only warm up
  void start(std::vector<Assignment> batch, std::size_t num_ignored = 0) {
    batch_ = std::move(batch);
    num_ignored_ = num_ignored;
    next_ = 0;
    open_ = batch_.size();
    samples_.assign(batch_.size(), {no_sample, 0});
    ++number_;
  }
  void clear() { start({}); }

  [[nodiscard]] std::uint64_t number() const { return number_; }
  [[nodiscard]] bool has_next() const { return next_ < batch_.size(); }
  [[nodiscard]] std::size_t next_slot() const { return next_; }
  [[nodiscard]] const Assignment& next() const { return batch_[next_]; }
  [[nodiscard]] const Assignment& take_next() { return batch_[next_++]; }

  void settle(std::size_t slot, const RegionSample& sample) {
    samples_[slot] = sample;
    --open_;
  }
  [[nodiscard]] bool complete() const { return open_ == 0; }
  [[nodiscard]] std::span<const RegionSample> samples() const {
    return std::span(samples_).subspan(num_ignored_);
  }

 private:
  std::vector<Assignment> batch_;
  std::vector<RegionSample> samples_;
  std::size_t num_ignored_ = 0;
  std::size_t next_ = 0;
  std::size_t open_ = 0;
  std::uint64_t number_ = 0;
};

}  // namespace contextune
