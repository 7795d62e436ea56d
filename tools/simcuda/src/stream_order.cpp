#include "stream_order.hpp"

#include <algorithm>

namespace simcuda {

namespace {

void append(std::vector<TaskPtr>& to, const std::vector<TaskPtr>& from) {
  std::copy_if(from.begin(), from.end(), std::back_inserter(to),
               [](const TaskPtr& task) { return !task->done; });
}

// What the legacy stream orders across streams.
std::vector<TaskPtr> before_elsewhere(const Stream& stream) {
  std::vector<TaskPtr> tasks;
  if (!stream.blocking) return tasks;
  const Context& context = *stream.context;
  if (context.legacy == &stream) {
    for (const Stream* const other : context.streams)
      if (other->blocking && other != &stream) append(tasks, other->tail);
    append(tasks, context.left_behind);
  } else if (context.legacy != nullptr) {
    append(tasks, context.legacy->tail);
  }
  return tasks;
}

std::vector<TaskPtr> before(const Stream& stream) {
  std::vector<TaskPtr> tasks = before_elsewhere(stream);
  append(tasks, stream.tail);
  return tasks;
}

}  // namespace

void submit(Stream& stream, const TaskPtr& task, const TaskPtr& also_after) {
  std::vector<TaskPtr> after = before(stream);
  if (also_after != nullptr) after.push_back(also_after);
  task->context = stream.context;
  stream.tail = {task};
  end_chain(stream);
  driver().pending.submit(task, after);
}

void submit_launch(Stream& stream, const TaskPtr& task, bool chained, bool waits) {
  const Chain& chain = stream.chain;
  std::vector<TaskPtr> after;
  if (chained && !chain.tasks.empty()) {
    after = before_elsewhere(stream);
    append(after, waits ? chain.tasks : chain.after);
    append(after, chain.also);
  } else {
    after = before(stream);
  }
  // What it does not come after is still to come before whatever is no launch of this kind.
  std::vector<TaskPtr> beside;
  append(beside, stream.tail);
  std::erase_if(beside, [&](const TaskPtr& one) {
    return std::find(after.begin(), after.end(), one) != after.end();
  });
  task->context = stream.context;
  task->stream = &stream;
  task->hold = beside.empty() ? Task::Hold::anew : Task::Hold::with_others;
  stream.tail = std::move(beside);
  stream.tail.push_back(task);
  driver().pending.submit(task, after);
  stream.chain = {{task}, std::move(after), {}, {}};
}

TaskPtr submit_marker(Stream& stream, const TaskPtr& also_after) {
  end_chain(stream);
  if (driver().pending.immediate()) return nullptr;
  const auto marker = std::make_shared<Task>();
  submit(stream, marker, also_after);
  return marker;
}

void leave_order(Stream& stream) {
  std::vector<TaskPtr>& left = stream.context->left_behind;
  std::erase_if(left, [](const TaskPtr& task) { return task->done; });
  if (stream.blocking) append(left, stream.tail);
}

}  // namespace simcuda
