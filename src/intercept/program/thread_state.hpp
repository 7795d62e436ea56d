#pragma once

#include <cstddef>
#include <cstdint>

#include "intercept/program/settled_collectives.hpp"
#include "intercept/program/settled_launches.hpp"
#include "intercept/program/submitted_kernel_cache.hpp"

namespace contextune::intercept {

class LaunchRegion;
class TunableCall;

/// An open range or entry of a thread.
struct EntryFrame {
  std::uint64_t mark = 0;          ///< what opened it: an NVTX domain, or the API
  LaunchRegion* region = nullptr;  ///< null: the range is no region
  bool counts = false;             ///< it is the region's entry that is a pass
  bool inner = false;              ///< the region was open on this thread already
};

/// The state that contextune keeps of one thread. Trivially destructible: the program launches work
/// from destructors that run after all of ours would have.
struct ThreadState {
  static constexpr std::size_t most_frames = 64;

  LaunchRegion* region = nullptr;  ///< innermost
  bool counts = false;             ///< launches here belong to its pass
  TunableCall* call = nullptr;     ///< innermost
  SettledLaunches settled;
  SettledCollectives collectives;
  SubmittedKernelCache submitted;
  std::uint32_t num_frames = 0;
  std::uint32_t num_lost = 0;  ///< ranges that were opened beyond most_frames
  EntryFrame frames[most_frames];

  /// False: there is no room; the matching close is swallowed.
  bool open(const EntryFrame& frame) noexcept;
  /// Closes the innermost frame of that mark (and region, unless null).
  /// @return the frame; without a region if there is none
  EntryFrame close(std::uint64_t mark, const LaunchRegion* of = nullptr) noexcept;
  [[nodiscard]] bool is_in(const LaunchRegion* wanted) const noexcept;

 private:
  void find_innermost() noexcept;
};

/// This thread's state, found without the frontend's help. The linker is asked where it is: storage
/// of the initial-exec kind would not fit a library that is opened late.
[[nodiscard]] ThreadState& find_this_thread() noexcept;
/// This thread's; a few instructions where the frontend keeps a word for us.
[[nodiscard]] inline ThreadState& this_thread() noexcept {
  const auto word_of_thread = hot_words.thread_word.load(std::memory_order_acquire);
  if (word_of_thread == nullptr) return find_this_thread();
  void*& word = *word_of_thread();
  if (word == nullptr) word = &find_this_thread();
  return *static_cast<ThreadState*>(word);
}
/// The same for the thread that makes the launch, faster where the frontend keeps a word for us.
[[nodiscard]] inline ThreadState& thread_of(const contextune_launch& call) noexcept {
  if (call.thread == nullptr) return this_thread();
  if (*call.thread == nullptr) *call.thread = &this_thread();
  return *static_cast<ThreadState*>(*call.thread);
}
/// A number that no other live thread has; never 0.
[[nodiscard]] inline std::uint64_t this_thread_number() noexcept {
  return reinterpret_cast<std::uint64_t>(&this_thread());
}

}  // namespace contextune::intercept
