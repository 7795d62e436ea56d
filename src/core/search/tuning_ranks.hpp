#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "core/coordination/lockstep.hpp"
#include "core/trials/decision_port.hpp"

namespace contextune {

/// The dealings of one region's tuning with other ranks. As it stands here, with none.
///
/// Threads as RegionTuning says.
class TuningRanks {
 public:
  /// The thing that begins and may have to be agreed on first.
  enum class Due {
    Decision,  ///< one that DecisionPort::hold forbids
    Entry      ///< that the program makes, and in which something else may run
  };

  virtual ~TuningRanks() = default;

  /// Whether the passes are this rank's own affair, now and later: no other rank makes them with
  /// it.
  [[nodiscard]] virtual bool is_alone() { return false; }

  /// For what the ranks of agreed passes do together beside agreeing on them. Null: there is but
  /// this one.
  [[nodiscard]] virtual std::unique_ptr<Lockstep> lockstep() { return nullptr; }

  /// After Waiting::Ranks: waits, with a deadline, for what the next begin_pass depends on. Other
  /// threads may make other calls meanwhile; of this one there is one at a time.
  /// @param interrupted asked now and then, unless it is empty: whether to return without it
  virtual void await(const std::function<bool()>& /*interrupted*/ = {}) {}

  /// Sees to it that what is due is allowed: takes the question back, or waits for the verdict
  /// where that is too late, which others' programs cannot delay.
  /// @return false: not yet; ask again in a moment, without the region's lock in between
  virtual bool settle(Due /*due*/, double /*now*/) { return true; }

  /// This process is at something that takes a while before its next pass: other ranks are to wait
  /// for it so long instead of giving it up. `why` is a clause: "is ...".
  virtual void occupied(double /*seconds*/, const std::string& /*why*/) {}

  /// There are no more passes now, and will be when the region comes round again: no rank waits for
  /// this one until then.
  virtual void pause() {}

  /// There are no more passes, ever, for that reason, a clause: no rank waits for this one. Nothing
  /// but settle() may follow. Also while another thread is in await, which returns soon.
  virtual void leave(const std::string& /*why*/) {}

  /// The pass that has begun and those that were agreed on after it are made by no rank: one of
  /// them cannot. In place of its end.
  virtual void cut_short() {}

  /// The ranks that make the passes with this one have been lost, for that reason, a clause: no
  /// pass that was agreed on is made any more.
  /// @return whether the search goes on without them
  virtual bool go_on_alone(const std::string& /*why*/) { return false; }

  /// Collective sites are told through `port` from now on, which outlives this.
  /// @return false: there is nobody to keep in step with, so they keep their default
  [[nodiscard]] virtual bool keep_in_step(DecisionPort& /*port*/) { return false; }

  /// The work of a pass of this region is known to wait for other ranks. Where its entries are made
  /// for it, all ranks have to make the same number of them. Call before the first of them.
  /// @param ranks of the job, ascending: nobody else has to do with it; empty: that is not known
  virtual void repeat_together(std::span<const std::uint32_t> /*ranks*/) {}

  /// Only these ranks of the job tune the region. Before its first pass.
  virtual void limit_to(std::span<const std::uint32_t> /*ranks*/) {}
};

}  // namespace contextune
