#include "stream_order.hpp"

#include <algorithm>

namespace simcuda {

namespace {

void append(std::vector<TaskPtr>& to, const std::vector<TaskPtr>& from) {
  std::copy_if(from.begin(), from.end(), std::back_inserter(to),
               [](const TaskPtr& task) { return !task->done; });
}

std::vector<TaskPtr> before(const Stream& stream) {
  std::vector<TaskPtr> tasks;
  append(tasks, stream.tail);
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

}  // namespace

void submit(Stream& stream, const TaskPtr& task, const TaskPtr& also_after) {
  std::vector<TaskPtr> after = before(stream);
  if (also_after != nullptr) after.push_back(also_after);
  task->context = stream.context;
  stream.tail = {task};
  driver().pending.submit(task, after);
}

TaskPtr submit_marker(Stream& stream, const TaskPtr& also_after) {
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
