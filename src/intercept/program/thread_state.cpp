#include "intercept/program/thread_state.hpp"

namespace contextune::intercept {
namespace {

constinit thread_local ThreadState state;

}  // namespace

ThreadState& find_this_thread() noexcept {
  return state;
}

bool ThreadState::open(const EntryFrame& frame) noexcept {
  if (num_frames == most_frames) {
    ++num_lost;
    return false;
  }
  frames[num_frames++] = frame;
  find_innermost();
  return true;
}

EntryFrame ThreadState::close(std::uint64_t mark, const LaunchRegion* of) noexcept {
  // Ranges beyond the room are innermost, whatever their domain.
  if (num_lost != 0 && of == nullptr) {
    --num_lost;
    return {};
  }
  for (std::uint32_t i = num_frames; i-- > 0;) {
    if (frames[i].mark != mark || (of != nullptr && frames[i].region != of)) continue;
    const EntryFrame closed = frames[i];
    for (std::uint32_t j = i + 1; j < num_frames; ++j) frames[j - 1] = frames[j];
    --num_frames;
    find_innermost();
    return closed;
  }
  return {};
}

bool ThreadState::is_in(const LaunchRegion* wanted) const noexcept {
  for (std::uint32_t i = 0; i < num_frames; ++i) {
    if (frames[i].region == wanted) return true;
  }
  return false;
}

void ThreadState::find_innermost() noexcept {
  region = nullptr;
  counts = false;
  for (std::uint32_t i = num_frames; i-- > 0;) {
    if (frames[i].region == nullptr) continue;
    if (region == nullptr) region = frames[i].region;
    if (frames[i].region == region) counts = counts || frames[i].counts;
  }
}

}  // namespace contextune::intercept
