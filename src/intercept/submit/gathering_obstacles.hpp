#pragma once

#include <exception>
#include <functional>
#include <string>
#include <utility>

namespace contextune::intercept {

/// Why launches that may be gathered are not any more: each reason is said once. Under the lock of
/// whoever launches; nothing throws.
class GatheringObstacles {
 public:
  /// Told, in a sentence.
  using Say = std::function<void(const std::string& sentence)>;

  explicit GatheringObstacles(Say say) : say_(std::move(say)) {}

  /// Whether nothing is gathered until the program ends.
  [[nodiscard]] bool gave_up() const noexcept { return gave_up_; }
  /// Nothing is, from now on.
  /// @param why a clause
  void give_up(const std::string& why) noexcept {
    if (!std::exchange(gave_up_, true)) say("Launches are not gathered any more: " + why + ".");
  }
  /// Calls of the driver are not shown any more that would have to hand over.
  void unguarded() noexcept {
    if (std::exchange(said_unguarded_, true)) return;
    say("Launches are neither chained nor gathered any more: the program has obtained more "
        "functions of the driver than are watched.");
  }
  void say(const std::string& sentence) noexcept {
    try {
      if (say_) say_(sentence);
    } catch (const std::exception&) {
      // Not said, then.
    }
  }

 private:
  const Say say_;
  bool gave_up_ = false;
  bool said_unguarded_ = false;
};

}  // namespace contextune::intercept
