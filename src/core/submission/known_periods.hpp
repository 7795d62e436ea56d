#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/submission/search_pace.hpp"

namespace contextune {

/// A cycle of steps, and what is known of its entries.
struct KnownPeriod {
  static constexpr std::size_t most = 8;  ///< that are known at a time

  std::uint32_t id = 0;  ///< 0: free
  std::uint32_t length = 0;
  std::uint32_t at = 0;       ///< of its tokens in the pool
  std::uint32_t least = 0;    ///< where its least rotation begins
  std::uint32_t matched = 0;  ///< the longest beginning of it that the last steps end with
  std::uint32_t runs = 0;
  bool first_is_unique = false;
  bool too_long = false;
  bool watched = false;  ///< matched is kept up to date while another is followed
  std::uint64_t identity = 0;
  std::uint64_t entries = 0;                ///< seen while it was not followed
  std::uint64_t led = 0;                    ///< seen while it was followed
  std::uint64_t counted_to = 0;             ///< the step up to which entries count already
  std::array<std::uint32_t, most> holds{};  ///< entries of others that repeat in one of it
};

/// The periods that a finder knows, with their tokens, by index. Where another one does not fit,
/// those that cover least are forgotten. The constructor takes all memory; nothing else throws.
class KnownPeriods {
 public:
  static constexpr std::size_t most = KnownPeriod::most;
  static constexpr std::uint32_t nobody = most;
  static constexpr std::uint32_t longest = 4096;  ///< steps of a period
  static constexpr std::size_t pool_size = std::size_t{4} * longest;

  KnownPeriods();

  [[nodiscard]] KnownPeriod& operator[](std::uint32_t index) noexcept { return known_[index]; }
  [[nodiscard]] const KnownPeriod& operator[](std::uint32_t index) const noexcept {
    return known_[index];
  }
  [[nodiscard]] auto begin() noexcept { return known_.begin(); }
  [[nodiscard]] auto end() noexcept { return known_.end(); }
  [[nodiscard]] auto begin() const noexcept { return known_.begin(); }
  [[nodiscard]] auto end() const noexcept { return known_.end(); }

  /// 0: nobody's.
  [[nodiscard]] std::uint32_t id_of(std::uint32_t index) const noexcept {
    return index == nobody ? 0 : known_[index].id;
  }
  [[nodiscard]] const std::uint64_t* tokens(const KnownPeriod& known) const noexcept {
    return &pool_[known.at];
  }
  /// Room for the tokens of a cycle that was just found, which begins at `pool_size`.
  [[nodiscard]] std::uint64_t* found_tokens() noexcept { return &pool_[pool_size]; }

  /// Adds a step to what matches the period. True after a whole one.
  [[nodiscard]] bool feed(KnownPeriod& known, std::uint64_t token) const noexcept;

  /// The period that is a rotation of the cycle; nobody: it is not known.
  [[nodiscard]] std::uint32_t same_cycle(const KnownPeriod& cycle) const noexcept;
  /// The cycle is known from now on, and others may not be any more.
  [[nodiscard]] std::uint32_t learn(const KnownPeriod& cycle, SearchPace& pace) noexcept;

  [[nodiscard]] static bool came_by_chance(const KnownPeriod& known) noexcept;
  [[nodiscard]] static bool followable(const KnownPeriod& known) noexcept;
  /// Also those before the find, and those inside other periods.
  /// @param led entries of the followed one that it does not count yet
  [[nodiscard]] std::uint64_t entries_of(std::uint32_t index, std::uint32_t followed = nobody,
                                         std::uint64_t led = 0) const noexcept;

  /// The one that was followed last; nobody: it is not known any more.
  [[nodiscard]] std::uint32_t last() const noexcept { return last_; }
  void set_last(std::uint32_t index) noexcept { last_ = index; }

 private:
  void relate(std::uint32_t index, SearchPace& pace) noexcept;
  void make_room(std::uint32_t length, SearchPace& pace) noexcept;
  void forget(std::uint32_t index, SearchPace& pace) noexcept;
  [[nodiscard]] std::uint32_t repeats_inside(const KnownPeriod& outer, const KnownPeriod& inner,
                                             SearchPace& pace) noexcept;
  [[nodiscard]] static bool holds_any(const KnownPeriod& known) noexcept;

  std::array<KnownPeriod, most> known_{};
  std::unique_ptr<std::uint64_t[]> pool_;     ///< tokens; behind them the cycle just found
  std::unique_ptr<std::uint16_t[]> borders_;  ///< where a match of them goes on after a mismatch
  std::uint32_t pool_used_ = 0;
  std::uint32_t next_id_ = 1;
  std::uint32_t last_ = nobody;
};

}  // namespace contextune
