#include "intercept/recording/open_recording.hpp"

#include <algorithm>
#include <utility>

namespace contextune::intercept {
namespace {

constexpr std::size_t most_operations = 100'000;

}  // namespace

void OpenRecording::obstruct(Obstacle obstacle) noexcept {
  if (recording_.obstacle) return;
  recording_.obstacle = std::move(obstacle);
  recording_.operations.clear();
}

std::optional<Recording::Obstacle> OpenRecording::claim(std::uint64_t thread, CUcontext context) {
  if (thread_ == 0) thread_ = thread;
  if (thread_ != thread) return Obstacle{FallbackReason::OtherThread, {}, false};
  if (context != context_) {
    return Obstacle{FallbackReason::SeveralDevices, "The region works in several contexts.", false};
  }
  return std::nullopt;
}

std::optional<Recording::Obstacle> OpenRecording::add(Operation operation) {
  if (host_knows_) return Obstacle{FallbackReason::HostReads, {}, false};
  if (recording_.operations.size() >= most_operations || recording_.host_bytes > most_host_bytes_) {
    return Obstacle{FallbackReason::RecordingTooLong, {}, false};
  }
  auto& streams = recording_.streams;
  if (operation.stream != nullptr &&
      std::find(streams.begin(), streams.end(), operation.stream) == streams.end()) {
    streams.push_back(operation.stream);
  }
  recording_.operations.push_back(std::move(operation));
  return std::nullopt;
}

std::optional<Recording::Obstacle> OpenRecording::note_host_side(Operation& operation,
                                                                 std::size_t at,
                                                                 std::size_t size_bytes,
                                                                 bool writes, bool pinned) {
  std::optional<Obstacle> obstacle;
  Operation::HostSide side;
  side.argument = at;
  side.size_bytes = size_bytes;
  side.writes = writes;
  side.pinned = pinned;
  side.program = reinterpret_cast<const void*>(operation.arguments[at]);
  const auto* begin = static_cast<const std::byte*>(side.program);
  // Once where a replay reads it or writes it, and once as it was.
  recording_.host_bytes += 2 * size_bytes;
  if (writes) {
    written_.emplace_back(begin, size_bytes);
  } else {
    for (const auto& [other, other_bytes] : written_) {
      if (begin < other + other_bytes && other < begin + size_bytes) {
        obstacle = {FallbackReason::HostMemory,
                    "A copy from the host reads what an earlier one wrote there.", false};
      }
    }
    if (recording_.host_bytes <= most_host_bytes_) side.bytes.assign(begin, begin + size_bytes);
  }
  operation.host = std::move(side);
  return obstacle;
}

void OpenRecording::note_copy(bool writes_to_host, bool host_waits) noexcept {
  to_host_ = to_host_ || writes_to_host;
  // Only after it: a copy to the host that ends the region's work is nothing the host acted on.
  if (to_host_ && host_waits) host_knows_ = true;
}

bool OpenRecording::note_synchronise() noexcept {
  // Work that follows is an obstacle, and without any there is nothing to wait before.
  if (to_host_) host_knows_ = true;
  return to_host_;
}

std::uint32_t OpenRecording::number_of(CUevent event) {
  const auto [place, fresh] = events_.emplace(event, recording_.num_events);
  if (fresh) ++recording_.num_events;
  return place->second;
}

std::optional<std::uint32_t> OpenRecording::find_event(CUevent event) const {
  const auto place = events_.find(event);
  if (place == events_.end()) return std::nullopt;
  return place->second;
}

void OpenRecording::note_group(contextune_nccl_fn fn) noexcept {
  if (fn == contextune_fn_ncclGroupStart) ++recording_.open_groups;
  if (fn == contextune_fn_ncclGroupEnd) --recording_.open_groups;
}

Recording OpenRecording::end(std::uint64_t thread, const ProgramVersions& versions) noexcept {
  auto& obstacle = recording_.obstacle;
  if (!obstacle && thread_ != 0 && thread_ != thread) {
    obstacle = {FallbackReason::OtherThread, {}, false};
  }
  if (!obstacle && recording_.open_groups != 0) {
    obstacle = {FallbackReason::Collective, "The region ends inside a group of NCCL's.", false};
  }
  if (!obstacle && versions_ != versions) obstacle = {FallbackReason::ReplayAllocation, {}, true};
  return std::exchange(recording_, {});
}

}  // namespace contextune::intercept
