#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/coordination/lockstep.hpp"
#include "intercept/measuring/start_line.hpp"

namespace contextune::intercept {

/// A barrier before each pass that several ranks have agreed on; see the option `align`. Used by
/// one thread; waits, with a deadline.
class PassBarrier {
 public:
  /// The outcome for the pass.
  enum class Outcome {
    Begins,    ///< on all ranks, now
    Overran,   ///< on none: work before it has not ended here
    CutShort,  ///< on none: work before it has not ended on another rank
    Lost       ///< on none: they lost one another; see why()
  };

  /// @param patience seconds that what comes before a pass may take
  PassBarrier(std::unique_ptr<Lockstep> lockstep, double patience);

  /// @param is_ready waits for what comes before the pass; false: it has not ended in time
  [[nodiscard]] Outcome arrive(const std::function<bool()>& is_ready);
  /// There are no more passes, for that reason, a clause: no rank waits here any longer.
  void leave(const std::string& why) { lockstep_->leave(why); }

  /// A clause.
  [[nodiscard]] const std::string& why() const noexcept { return lockstep_->why(); }

 private:
  const std::unique_ptr<Lockstep> lockstep_;
  StartLine line_;
  const double patience_;
};

}  // namespace contextune::intercept
