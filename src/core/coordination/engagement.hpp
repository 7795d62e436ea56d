#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/coordination/coordinator.hpp"

namespace contextune {

/// While it is held, this rank is at something with some ranks; see Coordinator::engage. The
/// coordinator must outlive it. Used by one thread at a time.
class Engagement {
 public:
  Engagement() = default;
  ~Engagement() { end(); }
  Engagement(const Engagement&) = delete;
  Engagement& operator=(const Engagement&) = delete;

  /// Nothing if it has begun.
  void begin(Coordinator& coordinator, const std::vector<std::uint32_t>& ranks, std::string why) {
    if (coordinator_ != nullptr || ranks.size() < 2) return;
    ranks_ = ranks;
    coordinator_ = &coordinator;
    coordinator_->engage(ranks_, std::move(why));
  }
  void end() noexcept {
    if (coordinator_ != nullptr) std::exchange(coordinator_, nullptr)->disengage(ranks_);
  }

 private:
  Coordinator* coordinator_ = nullptr;
  std::vector<std::uint32_t> ranks_;
};

}  // namespace contextune
