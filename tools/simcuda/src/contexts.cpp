#include "contexts.hpp"

#include <algorithm>
#include <array>

#include "host_calls.hpp"
#include "stream_order.hpp"
#include "stream_time.hpp"

namespace simcuda {

namespace {

// No destructor: threads end after the driver's users are gone.
struct CurrentContexts {
  std::array<Context*, 32> stack;
  std::size_t depth;
};
thread_local CurrentContexts current{};

}  // namespace

Context* current_context_or_null() {
  if (current.depth == 0) return nullptr;
  return driver().handles.find<Context>(current.stack[current.depth - 1]);
}

Context& current_context() {
  Context* const context = current_context_or_null();
  if (context == nullptr) {
    // A context that was destroyed while it was current.
    require(current.depth == 0 || current.stack[current.depth - 1] == nullptr,
            CUDA_ERROR_CONTEXT_IS_DESTROYED);
    throw Failure{CUDA_ERROR_INVALID_CONTEXT};
  }
  require(context->error == CUDA_SUCCESS, context->error);
  return *context;
}

void push_current(Context* context) {
  require(current.depth < current.stack.size(), CUDA_ERROR_INVALID_VALUE);
  current.stack[current.depth++] = context;
}

Context* pop_current() {
  require(current.depth > 0, CUDA_ERROR_INVALID_CONTEXT);
  return current.stack[--current.depth];
}

void set_current(Context* context) {
  if (context == nullptr) {
    if (current.depth > 0) --current.depth;
    return;
  }
  if (current.depth == 0) current.depth = 1;
  current.stack[current.depth - 1] = context;
}

Context* make_context(int device, unsigned flags) {
  Driver& state = driver();
  auto* const context = state.handles.make<Context>();
  context->device = device;
  context->flags = flags;
  context->id = state.next_context_id++;
  context->limits = {{CU_LIMIT_STACK_SIZE, 1024},
                     {CU_LIMIT_PRINTF_FIFO_SIZE, 1 << 20},
                     {CU_LIMIT_MALLOC_HEAP_SIZE, 8 << 20},
                     {CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 2},
                     {CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 2048},
                     {CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 64},
                     {CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0}};
  return context;
}

void destroy_context(Context* context, DriverLock& lock) {
  Driver& state = driver();
  state.pending.abandon(context, lock);
  while (!context->streams.empty()) destroy_stream(*context->streams.begin());
  for (Event* const event : context->events) state.handles.destroy(event);
  for (Module* const module : context->modules) {
    for (Function* const function : module->functions) state.handles.destroy(function);
    if (module->library != nullptr) module->library->modules.erase(context);
    state.handles.destroy(module);
  }
  state.memory.release_all(reinterpret_cast<CUcontext>(context));
  state.handles.destroy(context);
}

Stream* make_stream(Context& context, unsigned flags, int priority) {
  Driver& state = driver();
  auto* const stream = state.handles.make<Stream>();
  stream->context = &context;
  stream->flags = flags;
  stream->blocking = (flags & CU_STREAM_NON_BLOCKING) == 0;
  stream->priority = std::clamp(priority, highest_priority, lowest_priority);
  stream->id = state.next_stream_id++;
  stream->host_calls = std::make_shared<HostCalls>();
  context.streams.insert(stream);
  return stream;
}

void destroy_stream(Stream* stream) {
  Context& context = *stream->context;
  leave_order(*stream);
  reckon_at_last(*stream);
  context.destroyed_ready = std::max(context.destroyed_ready, stream->ready);
  context.streams.erase(stream);
  if (context.legacy == stream) context.legacy = nullptr;
  std::erase_if(context.per_thread, [&](const auto& entry) { return entry.second == stream; });
  driver().handles.destroy(stream);
}

Stream& default_stream(Context& context, NullStream which) {
  if (which == NullStream::legacy) {
    if (context.legacy == nullptr) context.legacy = make_stream(context, 0, 0);
    return *context.legacy;
  }
  Stream*& mine = context.per_thread[std::this_thread::get_id()];
  if (mine == nullptr) mine = make_stream(context, 0, 0);
  return *mine;
}

Stream& stream_of(CUstream handle, NullStream null_stream) {
  Context& context = current_context();
  if (handle == nullptr) return default_stream(context, null_stream);
  if (handle == CU_STREAM_LEGACY) return default_stream(context, NullStream::legacy);
  if (handle == CU_STREAM_PER_THREAD) return default_stream(context, NullStream::per_thread);
  Stream& stream = driver().handles.get<Stream>(handle);
  require(stream.context->error == CUDA_SUCCESS, stream.context->error);
  return stream;
}

}  // namespace simcuda
