#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "collective.hpp"
#include "handle.hpp"
#include "message.hpp"

namespace simnccl {

/// What a group does on one communicator.
struct LaunchPlan {
  ncclComm* handle = nullptr;
  std::shared_ptr<Communicator> comm;
  std::vector<Collective> collectives;
  std::vector<Message> messages;
};

/// Collectives that are done as one: of the same function, type and operation, the largest no more
/// than four times the smallest. Ordered by size, the largest first.
[[nodiscard]] std::vector<std::vector<Collective>> bins_of(std::vector<Collective> collectives,
                                                           int ranks);

/// What was decided about a plan.
struct DecidedPlan {
  struct Bin {
    std::vector<Collective> collectives;
    Decision decision;
  };
  const LaunchPlan* plan = nullptr;
  std::vector<Bin> bins;
};

/// Asks the tuner for each bin and connects what is used for the first time. The connections of
/// several communicators are made at the same time, by `run_together`. @throws Error
[[nodiscard]] std::vector<DecidedPlan> prepare(
    const std::vector<LaunchPlan>& plans,
    const std::function<void(const std::vector<std::function<void()>>&)>& run_together);

/// Puts the work on its streams. @throws Error
void enqueue(const DecidedPlan& decided);

}  // namespace simnccl
