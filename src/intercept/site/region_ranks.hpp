#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace contextune::intercept {

/// The ranks that make a region's passes with this one; as it stands here, there are none. Any
/// thread.
class RegionRanks {
 public:
  virtual ~RegionRanks() = default;

  /// How they answer a question.
  enum class Answer {
    All,      ///< yes, all of them
    NotThis,  ///< not this one
    NotAll,   ///< not another one
    Lost      ///< they have not come together
  };
  /// Between passes, once on each of them: whether they all are ready for what they do next. Waits
  /// for them, with a deadline.
  /// @param is_ready of this rank; looked at while the others know that this takes a while
  /// @param why      a clause, where they are Lost
  [[nodiscard]] virtual Answer ask(const std::function<bool()>& is_ready, std::string& /*why*/) {
    return is_ready() ? Answer::All : Answer::NotThis;
  }

  /// The work in the region is known to wait for other ranks: all of them make the same passes, or
  /// none is made. Before its first pass.
  /// @param ranks of the job that make them, and nobody else does; empty: that is not known
  virtual void repeat_together(std::span<const std::uint32_t> /*ranks*/) noexcept {}

  /// Why they have not agreed, so that the region runs its defaults; a clause. Empty: they have, or
  /// there is none that it would have to agree with.
  [[nodiscard]] virtual std::string why_untuned() { return {}; }
};

}  // namespace contextune::intercept
