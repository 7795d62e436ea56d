// External correlation: ids that a client pushes around its own calls.
#include <array>

#include "collector.hpp"

namespace simcupti {

namespace {

struct Stack {
  std::array<std::uint64_t, 64> ids;
  std::size_t depth;
};

// No destructor: threads may end after everything else.
struct OfThread {
  std::array<Stack, CUPTI_EXTERNAL_CORRELATION_KIND_SIZE> stacks;
  std::uint32_t last_correlation;
};
thread_local OfThread of_thread{};

}  // namespace

void Collector::push_external(CUpti_ExternalCorrelationKind kind, std::uint64_t id) {
  Stack& stack = of_thread.stacks[static_cast<std::size_t>(kind)];
  if (stack.depth < stack.ids.size()) stack.ids[stack.depth] = id;
  ++stack.depth;
}

CUptiResult Collector::pop_external(CUpti_ExternalCorrelationKind kind, std::uint64_t* last) {
  Stack& stack = of_thread.stacks[static_cast<std::size_t>(kind)];
  if (stack.depth == 0) return CUPTI_ERROR_QUEUE_EMPTY;
  --stack.depth;
  if (last != nullptr && stack.depth < stack.ids.size()) *last = stack.ids[stack.depth];
  return CUPTI_SUCCESS;
}

// Runs on the thread that made the driver call. A graph launch reports many activities for one
// call.
void Collector::add_external(const simcuda_activity& activity) {
  if (activity.correlation == of_thread.last_correlation) return;
  for (std::size_t kind = 0; kind < of_thread.stacks.size(); ++kind) {
    const Stack& stack = of_thread.stacks[kind];
    if (stack.depth == 0 || stack.depth > stack.ids.size()) continue;
    of_thread.last_correlation = activity.correlation;
    add(correlation_record(static_cast<CUpti_ExternalCorrelationKind>(kind),
                           stack.ids[stack.depth - 1], activity.correlation, activity.end));
  }
}

}  // namespace simcupti
