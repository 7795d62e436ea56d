#pragma once

#include <mutex>

#include "core/coordination/coordinator.hpp"
#include "rank/members/agreement_hub.hpp"

namespace contextune::rank {

/// The coordinator of a single rank, which agrees with itself: it decides at once, on the thread
/// that speaks.
class LocalCoordinator final : public Coordinator {
 public:
  explicit LocalCoordinator(Deciders deciders) : deciders_(std::move(deciders)) {}

  [[nodiscard]] std::uint32_t rank() const noexcept override { return 0; }
  [[nodiscard]] std::uint32_t num_ranks() const noexcept override { return 1; }
  void say(const Topic& topic, std::uint32_t kind, Payload part, double seconds) noexcept override;
  [[nodiscard]] Agreement poll(const Topic& topic) noexcept override;
  [[nodiscard]] Agreement wait(const Topic& topic, double seconds) noexcept override;
  void withdraw(const Topic& topic, std::string why) noexcept override;
  [[nodiscard]] std::string lost() const override { return {}; }

 private:
  Deciders deciders_;
  std::mutex mutex_;
  std::map<Topic, Agreement, TopicLess> settled_;
};

}  // namespace contextune::rank
