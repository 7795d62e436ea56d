#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace contextune {

/// The relation of a step to the period that a finder follows. The next `Begins` completes an open
/// entry.
enum class PeriodStep : std::uint8_t {
  Outside,  ///< no entry is open
  Inside,   ///< the step belongs to the open entry
  /// An entry begins with this step, and the open one, if any, is complete.
  Begins,
  Broken,    ///< the step is not what the period has here: the open entry is void
  Restarts,  ///< Broken, and an entry begins with this very step
};

/// A cycle of steps that came at least twice in a row.
struct FoundPeriod {
  std::uint32_t id = 0;      ///< this finder's name for it, never 0
  std::uint32_t length = 0;  ///< steps
  /// Equal for all rotations of the cycle, in every finder.
  std::uint64_t identity = 0;
  /// Also those before the find, and those inside other periods.
  std::uint64_t entries = 0;
  std::uint64_t steps = 0;  ///< entries * length
};

enum class Finding : std::uint8_t { Looking, Found, NothingRepeats };

/// Finds the stretch that a program repeats, from the steps of one thread or stream. A step is a
/// 64-bit token: a hash of the kind of call, the function, the grid and the block, not of
/// arguments. Grids that grow from round to round (a decode step's attention) belong in it by their
/// power of two, or no two rounds are equal. A call that asks whether something is done (a query)
/// is no step.
///
/// The rule:
/// - A period is found when a cycle of at most `longest` steps came twice in a row, and foretold at
///   least `evidence` steps. The shortest such cycle wins, so loops are found inside out.
/// - A break of the followed period may be part of a longer cycle. Once that came three times in a
///   row, the finder follows it instead: its entries are equal too, and leave nothing out. A caller
///   for whom they last too long says so (keep_inside).
/// - A loop whose count changes is part of no longer cycle. The finder follows its body, and each
///   round breaks that. The finder gives up a longer cycle that came by chance: one that broke four
///   times, and came less than twice between breaks.
/// - After a break, a whole pass of a known period is enough to follow it again. The one followed
///   last begins at once, if its first token stands nowhere else in it.
/// - Without a find, searches become rarer, down to one every 1,024 steps.
///
/// The constructor takes all memory. Nothing throws but the constructor and the lists.
class PeriodFinder {
 public:
  static constexpr std::uint32_t longest = 4096;
  static constexpr std::uint32_t evidence = 8;
  static constexpr std::size_t most_periods = 8;

  PeriodFinder();
  PeriodFinder(const PeriodFinder&) = delete;
  PeriodFinder& operator=(const PeriodFinder&) = delete;

  PeriodStep see(std::uint64_t token) noexcept {
    ring_[steps_++ & ring_mask] = token;
    if (steady_ && token == *expected_) [[likely]] {
      const bool begins = expected_ == first_;
      if (++expected_ == end_) {
        expected_ = first_;
        ++led_;
      }
      return begins ? PeriodStep::Begins : PeriodStep::Inside;
    }
    return see_slowly(token);
  }

  /// The period followed now, 0: none. At a `Begins`, the one whose entry begins.
  [[nodiscard]] std::uint32_t followed() const noexcept;
  /// Its steps, 0: none.
  [[nodiscard]] std::uint32_t followed_length() const noexcept;

  /// Entries of the followed period last too long, or would: follow what repeats inside from here
  /// on. False, and nothing changes, where nothing found repeats inside. The open entry is void if
  /// true.
  bool keep_inside() noexcept;

  [[nodiscard]] Finding finding() const noexcept;
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }

  /// At most most_periods, those that cover most steps first.
  [[nodiscard]] std::vector<FoundPeriod> found() const;
  /// The tokens of an entry, from where it was first entered on; empty for an id that is not known
  /// (any more). Valid until see().
  [[nodiscard]] std::span<const std::uint64_t> tokens(std::uint32_t id) const noexcept;

  /// Comparisons and copies that searches took: at most work_a_step a step, but for a few searches.
  [[nodiscard]] std::uint64_t work() const noexcept { return work_; }
  static constexpr std::uint64_t work_a_step = 64;
  [[nodiscard]] static std::size_t memory_bytes() noexcept;

 private:
  static constexpr std::size_t ring_size = 16384;  ///< three of the longest periods and more
  static constexpr std::size_t ring_mask = ring_size - 1;
  static constexpr std::size_t pool_size = std::size_t{4} * longest;
  static constexpr std::uint32_t nobody = most_periods;

  struct Known {
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
    std::uint64_t entries = 0;     ///< seen while it was not followed
    std::uint64_t led = 0;         ///< seen while it was followed
    std::uint64_t counted_to = 0;  ///< the step up to which entries count already
    std::array<std::uint32_t, most_periods>
        holds{};  ///< entries of others that repeat in one of it
  };

  PeriodStep see_slowly(std::uint64_t token) noexcept;
  PeriodStep go_on() noexcept;
  PeriodStep break_off(std::uint64_t token) noexcept;
  [[nodiscard]] bool look(std::uint64_t token) noexcept;
  void watch(std::uint64_t token) noexcept;
  [[nodiscard]] bool feed(Known& known, std::uint64_t token) const noexcept;
  [[nodiscard]] std::uint32_t longest_match(std::uint64_t token, bool only_watched) noexcept;
  [[nodiscard]] bool begins_at_once(std::uint64_t token) const noexcept;
  void count_whole(Known& known) const noexcept;
  void follow(std::uint32_t index, std::uint32_t phase) noexcept;
  void stop_following(std::uint64_t end) noexcept;
  void search() noexcept;
  void search_back(std::uint32_t window) noexcept;
  void find(std::uint32_t period) noexcept;
  [[nodiscard]] std::uint32_t same_cycle(const Known& cycle) const noexcept;
  [[nodiscard]] std::uint32_t learn(const Known& cycle) noexcept;
  void relate(std::uint32_t index) noexcept;
  void make_room(std::uint32_t length) noexcept;
  void forget(std::uint32_t index) noexcept;
  [[nodiscard]] std::uint32_t repeats_inside(const Known& outer, const Known& inner) noexcept;
  [[nodiscard]] static bool holds_any(const Known& known) noexcept;
  [[nodiscard]] static bool came_by_chance(const Known& known) noexcept;
  [[nodiscard]] std::uint32_t id_of(std::uint32_t index) const noexcept;
  [[nodiscard]] bool followable(const Known& known) const noexcept;
  [[nodiscard]] std::uint64_t led_of(std::uint32_t index) const noexcept;
  [[nodiscard]] std::uint64_t entries_of(std::uint32_t index) const noexcept;
  void spend(std::uint64_t operations) noexcept;

  [[nodiscard]] std::uint64_t back(std::uint64_t distance) const noexcept {
    return ring_[(steps_ - 1 - distance) & ring_mask];
  }

  // Members that every step touches.
  std::uint64_t steps_ = 0;
  std::unique_ptr<std::uint64_t[]> ring_;  ///< the last steps
  const std::uint64_t* expected_ = nullptr;
  const std::uint64_t* first_ = nullptr;
  const std::uint64_t* end_ = nullptr;
  std::uint64_t led_ = 0;  ///< whole entries since the period is followed
  bool steady_ = false;    ///< an entry is open, and nothing but its period is watched

  bool open_ = false;  ///< the caller has an open entry
  bool watching_ = false;
  bool last_went_on_ = false;  ///< the one followed last came once at least
  std::uint32_t followed_ = nobody;
  std::uint32_t outer_ = nobody;  ///< to be followed from the next step on
  std::uint32_t last_ = nobody;   ///< followed last
  std::uint64_t watch_until_ = 0;
  std::uint64_t last_break_ = 0;  ///< the step that broke a period last
  std::uint64_t last_search_ = 0;
  std::uint64_t work_ = 0;
  std::uint64_t free_at_ = 0;        ///< the step from which on the next search is paid for
  std::uint64_t idle_ = 0;           ///< steps in which nothing was followed, since the last find
  std::uint64_t unit_ = first_unit;  ///< steps between searches
  std::uint32_t pool_used_ = 0;
  std::uint32_t next_id_ = 1;
  std::array<Known, most_periods> known_{};
  std::unique_ptr<std::uint64_t[]>
      pool_;  ///< tokens of known periods; behind them the cycle just found
  std::unique_ptr<std::uint16_t[]> borders_;    ///< where a match of them goes on after a mismatch
  std::unique_ptr<std::uint16_t[]> extension_;  ///< scratch of a search

  static constexpr std::uint64_t first_unit = 8;
};

}  // namespace contextune
