#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/submission/known_periods.hpp"
#include "core/submission/search_pace.hpp"

namespace contextune {

/// The kinds of steps of a program.
enum class StepKind : std::uint8_t { Launch, GraphLaunch, Copy, Wait };

/// A step as PeriodFinder takes it. `identity` tells steps of one kind apart.
[[nodiscard]] constexpr std::uint64_t step_token(StepKind kind, std::uint64_t identity) noexcept {
  std::uint64_t token = identity * 0x9e3779b97f4a7c15ULL;
  token ^= token >> 32U;
  return token << 2U | static_cast<std::uint64_t>(kind);
}
[[nodiscard]] constexpr StepKind kind_of_step(std::uint64_t token) noexcept {
  return static_cast<StepKind>(token & 3U);
}

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
  static constexpr std::uint32_t longest = KnownPeriods::longest;
  static constexpr std::uint32_t evidence = 8;

  PeriodFinder();
  PeriodFinder(const PeriodFinder&) = delete;
  PeriodFinder& operator=(const PeriodFinder&) = delete;

  PeriodStep see(std::uint64_t token) noexcept {
    ring_.add(pace_.step(), token);
    if (steady_ && token == walk_.expected()) [[likely]] {
      const bool begins = walk_.is_at_first();
      if (walk_.pass()) walk_.count_entry();
      return begins ? PeriodStep::Begins : PeriodStep::Inside;
    }
    return see_slowly(token);
  }

  /// The period followed now, 0: none. At a `Begins`, the one whose entry begins.
  [[nodiscard]] std::uint32_t followed() const noexcept;
  /// Its steps, 0: none.
  [[nodiscard]] std::uint32_t followed_length() const noexcept;
  /// Steps of its entries so far, as FoundPeriod counts them.
  [[nodiscard]] std::uint64_t followed_steps() const noexcept;

  /// Entries of the followed period last too long, or would: follow what repeats inside from here
  /// on. False, and nothing changes, where nothing found repeats inside. The open entry is void if
  /// true.
  bool keep_inside() noexcept;

  [[nodiscard]] Finding finding() const noexcept;
  [[nodiscard]] std::uint64_t steps() const noexcept { return pace_.steps(); }

  /// At most KnownPeriods::most, those that cover most steps first.
  [[nodiscard]] std::vector<FoundPeriod> found() const;
  /// The tokens of an entry, from where it was first entered on; empty for an id that is not known
  /// (any more). Valid until see().
  [[nodiscard]] std::span<const std::uint64_t> tokens(std::uint32_t id) const noexcept;

  /// Comparisons and copies that searches took: at most SearchPace::work_a_step a step, but for a
  /// few searches.
  [[nodiscard]] std::uint64_t work() const noexcept { return pace_.work(); }
  [[nodiscard]] static std::size_t memory_bytes() noexcept;

 private:
  /// The last steps of a thread or stream. The constructor takes all memory; nothing else throws.
  class StepRing {
   public:
    static constexpr std::size_t size = 16384;  ///< three of the longest periods and more

    StepRing() : tokens_(std::make_unique_for_overwrite<std::uint64_t[]>(size)) {}

    /// The step of that number. Steps come one after the other.
    void add(std::uint64_t number, std::uint64_t token) noexcept {
      tokens_[number & (size - 1)] = token;
    }
    [[nodiscard]] std::uint64_t operator[](std::uint64_t number) const noexcept {
      return tokens_[number & (size - 1)];
    }

   private:
    std::unique_ptr<std::uint64_t[]> tokens_;
  };

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

  PeriodStep see_slowly(std::uint64_t token) noexcept;
  PeriodStep go_on() noexcept;
  PeriodStep break_off(std::uint64_t token) noexcept;
  [[nodiscard]] bool look(std::uint64_t token) noexcept;
  void watch(std::uint64_t token) noexcept;
  [[nodiscard]] std::uint32_t longest_match(std::uint64_t token, bool only_watched) noexcept;
  [[nodiscard]] bool begins_at_once(std::uint64_t token) const noexcept;
  void count_whole(KnownPeriod& known) const noexcept;
  void follow(std::uint32_t index, std::uint32_t phase) noexcept;
  void stop_following(std::uint64_t end) noexcept;
  void search() noexcept;
  void search_back(std::uint32_t window) noexcept;
  void find(std::uint32_t period) noexcept;
  [[nodiscard]] std::uint64_t back(std::uint64_t distance) const noexcept {
    return ring_[pace_.steps() - 1 - distance];
  }

  // Members that every step touches.
  StepRing ring_;        ///< the last steps
  PeriodWalk walk_;      ///< through the period that is followed
  bool steady_ = false;  ///< an entry is open, and nothing but its period is watched
  bool open_ = false;    ///< the caller has an open entry
  bool watching_ = false;
  bool last_went_on_ = false;  ///< the one followed last came once at least
  std::uint32_t followed_ = KnownPeriods::nobody;
  SearchPace pace_;  ///< counts the steps

  std::uint32_t outer_ = KnownPeriods::nobody;  ///< to be followed from the next step on
  std::uint64_t watch_until_ = 0;
  std::uint64_t last_break_ = 0;  ///< the step that broke a period last
  KnownPeriods known_;
  std::unique_ptr<std::uint16_t[]> extension_;  ///< scratch of a search
};

}  // namespace contextune
