#include "stream_time.hpp"

#include <algorithm>

namespace simcuda {

namespace {

bool is_after(const Stream* other, std::uint64_t sequence) {
  return other->put_off.empty() || other->put_off.front().sequence > sequence;
}

// The legacy stream and blocking streams wait for each other.
bool may_reckon(const Stream& stream, const PutOff& entry) {
  if (entry.when != nullptr && !entry.when->known) return false;
  if (!stream.blocking) return true;
  const Context& context = *stream.context;
  if (context.legacy != &stream)
    return context.legacy == nullptr || is_after(context.legacy, entry.sequence);
  return std::all_of(context.streams.begin(), context.streams.end(), [&](const Stream* other) {
    return other == &stream || !other->blocking || is_after(other, entry.sequence);
  });
}

void reckon_first(Stream& stream) {
  Driver& state = driver();
  const PutOff entry = std::move(stream.put_off.front());
  stream.put_off.pop_front();
  const double now = std::exchange(state.host_time, entry.host_time);
  entry.reckon();
  state.host_time = now;
}

}  // namespace

void put_off(Stream& stream, std::function<void()> reckon, std::shared_ptr<const Stamp> when) {
  Driver& state = driver();
  if (stream.put_off.empty()) state.with_open_times.push_back(&stream);
  stream.put_off.push_back(
      {state.next_put_off++, state.host_time, std::move(when), std::move(reckon)});
  reckon_what_is_known();
}

void reckon_what_is_known() {
  std::vector<Stream*>& open = driver().with_open_times;
  for (bool progress = true; progress;) {
    progress = false;
    for (std::size_t i = 0; i < open.size(); ++i) {
      Stream& stream = *open[i];
      while (!stream.put_off.empty() && may_reckon(stream, stream.put_off.front())) {
        reckon_first(stream);
        progress = true;
      }
    }
    std::erase_if(open, [](const Stream* stream) { return stream->put_off.empty(); });
  }
}

void reckon_at_last(Stream& stream) {
  if (stream.put_off.empty()) return;
  while (!stream.put_off.empty()) reckon_first(stream);
  std::erase(driver().with_open_times, &stream);
  reckon_what_is_known();
}

}  // namespace simcuda
