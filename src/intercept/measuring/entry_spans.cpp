#include "intercept/measuring/entry_spans.hpp"

#include <algorithm>
#include <cstdint>

#include "gpu/clock/span_timer.hpp"
#include "intercept/measuring/measurement.hpp"

namespace contextune::intercept {

EntrySpans::EntrySpans(const Measurement& measurement)
    : hold_([&measurement] { return measurement.make_stream_hold(); }) {}

void EntrySpans::begin_entry() noexcept {
  touched_.clear();
  hold_.begin_entry();
}

void EntrySpans::want(const Measurement& measurement) {
  if (timer_ == nullptr) timer_ = measurement.make_span_timer();
}

bool EntrySpans::touch(PassRecord& entry, StreamHandle stream, bool issued) noexcept {
  if (timer_ == nullptr) return false;
  // Only the thread that has it can reach its per-thread stream, so its end is marked as we go.
  const bool per_thread = static_cast<CUstream>(stream) == CU_STREAM_PER_THREAD;
  // The legacy stream is another one on each device, and only the timer knows which is meant.
  const bool legacy = static_cast<CUstream>(stream) == CU_STREAM_LEGACY;
  const bool known = std::find(touched_.begin(), touched_.end(), stream) != touched_.end();
  if (!known && !issued) hold_.touch(stream);
  if (hold_.is_first_run()) return false;
  if (!entry.span_open) {
    entry.span_open = true;
    timer_->begin(static_cast<std::uint64_t>(entry.pass), stream);
  } else if (per_thread ? issued : !known) {
    timer_->touch(stream);
  } else {
    return known;
  }
  if (per_thread || legacy) return false;
  if (!known) touched_.push_back(stream);
  return true;
}

void EntrySpans::end_entry(const PassRecord& entry) noexcept {
  if (entry.span_open) timer_->end();
  hold_.end_entry();
}

std::span<const SpanTimer::Span> EntrySpans::collect() {
  ended_.clear();
  if (timer_ != nullptr) timer_->collect(ended_);
  return ended_;
}

void EntrySpans::forget_stream(StreamHandle stream) noexcept {
  hold_.forget_stream(stream);
  if (auto* events = dynamic_cast<gpu::EventSpanTimer*>(timer_.get()))
    events->forget_stream(stream);
  // Another one may get its handle within the entry.
  std::erase(touched_, stream);
}

void EntrySpans::forget_context(CUcontext context) noexcept {
  hold_.forget_context(context);
  if (auto* events = dynamic_cast<gpu::EventSpanTimer*>(timer_.get()))
    events->forget_context(context);
}

}  // namespace contextune::intercept
