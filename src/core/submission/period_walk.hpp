#pragma once

#include <cstdint>

namespace contextune {

/// The way through the tokens of a period, step by step, entry after entry.
class PeriodWalk {
 public:
  /// From now on through these tokens, which outlive it.
  /// @param phase steps of it that came already
  void begin(const std::uint64_t* tokens, std::uint32_t length, std::uint32_t phase) noexcept {
    first_ = tokens;
    end_ = tokens + length;
    expected_ = tokens + phase;
    entries_ = 0;
  }

  /// The step that comes next.
  [[nodiscard]] std::uint64_t expected() const noexcept { return *expected_; }
  /// Whether an entry begins with that.
  [[nodiscard]] bool is_at_first() const noexcept { return expected_ == first_; }
  /// Steps since an entry began.
  [[nodiscard]] std::uint32_t phase() const noexcept {
    return static_cast<std::uint32_t>(expected_ - first_);
  }
  /// The step came. Whether it is the last of an entry.
  bool pass() noexcept {
    if (++expected_ != end_) return false;
    expected_ = first_;
    return true;
  }

  /// Whole entries that count.
  [[nodiscard]] std::uint64_t entries() const noexcept { return entries_; }
  void count_entry() noexcept { ++entries_; }
  void forget_entries() noexcept { entries_ = 0; }

 private:
  const std::uint64_t* expected_ = nullptr;
  const std::uint64_t* first_ = nullptr;
  const std::uint64_t* end_ = nullptr;
  std::uint64_t entries_ = 0;
};

}  // namespace contextune
