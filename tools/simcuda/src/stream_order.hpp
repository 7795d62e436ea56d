#pragma once

#include <functional>
#include <utility>

#include "contexts.hpp"

namespace simcuda {

/// Puts a task at the end of a stream: after what is on the stream, and after the legacy stream
/// where the two wait for each other. `also_after` is one more task to wait for, or null.
void submit(Stream& stream, const TaskPtr& task, const TaskPtr& also_after = nullptr);

/// Puts a launch at the end of a stream.
/// @param chained it is programmatic: where a launch of machine code stands directly before it, it
///                need not come after that
/// @param waits   its code waits for that one all the same, though for nothing before it
void submit_launch(Stream& stream, const TaskPtr& task, bool chained, bool waits);

/// Nothing can be chained any more to what is on the stream.
inline void end_chain(Stream& stream) {
  if (!stream.chain.tasks.empty()) stream.chain = {};
}

/// Puts something without effect at the end of a stream: a place to wait for. Null when all work
/// has its effect at once.
TaskPtr submit_marker(Stream& stream, const TaskPtr& also_after = nullptr);

/// What is left of a destroyed stream still comes before later work on the legacy stream.
void leave_order(Stream& stream);

/// Gives work its effect: now, or, when effects are deferred, as a task of the stream. The effect
/// must hold copies of all that it needs; it runs under the driver's lock.
template <class Effect>
void perform(Stream& stream, Effect&& effect) {
  if (driver().pending.immediate()) {
    end_chain(stream);
    effect();
    return;
  }
  const auto task = std::make_shared<Task>();
  task->effect = std::forward<Effect>(effect);
  submit(stream, task);
}

}  // namespace simcuda
