#pragma once

#include "driver.hpp"

namespace simcuda {

/// What stream 0 stands for in the entry point that was called.
enum class NullStream { legacy, per_thread };

/// The calling thread's current context, or null.
[[nodiscard]] Context* current_context_or_null();
/// @throws Failure{INVALID_CONTEXT}, or the sticky error of the context
[[nodiscard]] Context& current_context();
void push_current(Context* context);
Context* pop_current();
void set_current(Context* context);

[[nodiscard]] Context* make_context(int device, unsigned flags);
/// Deletes a context and all that lives in it, after the work that can still run.
void destroy_context(Context* context, DriverLock& lock);

[[nodiscard]] Stream* make_stream(Context& context, unsigned flags, int priority);
void destroy_stream(Stream* stream);
/// The stream that a handle stands for in the current context.
/// @throws Failure{INVALID_HANDLE} and what current_context() throws
[[nodiscard]] Stream& stream_of(CUstream handle, NullStream null_stream);
/// The legacy or per-thread stream of a context, made at first use.
[[nodiscard]] Stream& default_stream(Context& context, NullStream which);

constexpr int lowest_priority = 0;
constexpr int highest_priority = -5;

}  // namespace simcuda
