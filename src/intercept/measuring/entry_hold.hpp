#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <utility>

#include "gpu/clock/stream_hold.hpp"
#include "intercept/measuring/pass_record.hpp"

namespace contextune::intercept {

/// Whether the GPU begins an entry only when all of its work is there, and what that needs.
///
///     as it comes   axpy ......... softmax     the host launches softmax long after axpy has
///     ended: held          ......... axpy softmax     only the second time shows what a faster
///     axpy gains
///
/// An entry is held where the GPU was seen to wait for the host between launches, if each config is
/// one launch, so that all cost the host the same. The caller allows it only for bodies that are
/// repeated by a rank alone, as others may wait for what is held. A body that waits for its own
/// work cannot be held: it is seen by the time limits that it reaches. Not thread-safe.
///
/// The body of a held entry runs twice, and only the second run is timed. The first leaves the
/// caches as those configs leave them, and the GPU busy: without it an entry of 25 us on an H200
/// scatters by 3 % in place of 1, and is up to 1.5 % faster or slower by the configs before it.
class EntryHold {
 public:
  using Make = std::function<std::unique_ptr<gpu::StreamHold>()>;

  explicit EntryHold(Make make) : make_(std::move(make)) {}

  /// @param twice the body may run twice in an entry
  void allow(bool allowed, bool twice) noexcept {
    allowed_ = allowed;
    twice_ = twice;
  }
  /// Launches of an entry were timed each by itself, and all times have come.
  void heard(const PassRecord& entry) noexcept;

  /// Whether entries that are timed as a whole are held from now on.
  [[nodiscard]] bool is_wanted() const noexcept {
    return allowed_ && !refused_ && waits_for_host_ && host_seconds_ <= most_host_seconds;
  }

  void begin_entry() noexcept;
  /// The entry under way is timed as a whole: it is held if that is of use.
  void time_entry() noexcept;
  /// Whether the body runs for the first time of two.
  [[nodiscard]] bool is_first_run() const noexcept { return is_first_run_; }
  void end_first_run() noexcept;
  /// Before work of the entry on the stream.
  void touch(StreamHandle stream) noexcept;
  void drop_entry() noexcept;
  /// All work of the entry was issued, and the GPU may begin.
  void end_entry() noexcept;

  /// Why it is held no longer, where somebody could wonder.
  enum class Refusal {
    None,
    BodyWaits,      ///< for its own work
    DriverRefuses,  ///< to have a stream wait
    NoMemory        ///< or no thread, for what the streams wait for
  };
  /// Told once.
  [[nodiscard]] Refusal take_refusal() noexcept { return std::exchange(refusal_, Refusal::None); }

  void forget_stream(StreamHandle stream) noexcept {
    if (hold_ != nullptr) hold_->forget_stream(stream);
  }
  void forget_context(CUcontext context) noexcept {
    if (hold_ != nullptr) hold_->forget_context(context);
  }

 private:
  // A longer entry is made of much work, and little of it is lost to one launch that comes late.
  static constexpr double most_host_seconds = 0.05;

  void refuse() noexcept;

  const Make make_;
  std::unique_ptr<gpu::StreamHold> hold_;  ///< null: nothing was held yet
  bool allowed_ = false;
  bool twice_ = false;
  bool once_only_ = false;  ///< between two runs the work was waited for
  bool refused_ = false;
  Refusal refusal_ = Refusal::None;
  bool waits_for_host_ = false;  ///< the GPU does
  bool is_due_ = false;          ///< the entry under way is held from its first work on
  bool has_two_runs_ = false;
  bool is_first_run_ = false;
  bool is_held_ = false;
  int overruns_ = 0;  ///< entries in a row that reached their time limit
  double begin_ = 0;  ///< of the entry under way, on the host's clock
  /// The fewest that the host took to issue an entry that was not held.
  double host_seconds_ = std::numeric_limits<double>::infinity();
};

}  // namespace contextune::intercept
