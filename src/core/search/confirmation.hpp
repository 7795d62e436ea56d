#pragma once

#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "core/search/confirm.hpp"
#include "core/search/experiment.hpp"
#include "core/search/tuning_sites.hpp"
#include "core/trials/tuning_observer.hpp"

namespace contextune {

/// The confirm stage of a generation. Its winners are compared with what they have to beat, all
/// together, and the least of them is dropped where that shows no gain. Then every winner of those
/// that were shown together is left out once. The options, the observer
/// and the sites must outlive it.
class Confirmation {
 public:
  Confirmation(const TuningOptions& options, TuningObserver& observer, TuningSites& sites);

  /// @param bounded the program makes the entries
  /// @return false: there is nothing to be shown, and event() says so
  [[nodiscard]] bool start(bool bounded);
  /// Starts the next passes.
  /// @return false: it is decided, and event() says how
  [[nodiscard]] bool start_next(Experiment& experiment);
  /// Takes one sample for each of those passes.
  void complete(std::span<const RegionSample> samples, bool bounded);
  /// Nothing more is compared: what was shown stays, unless a pass has overrun.
  void cut_short(bool has_overrun);

  [[nodiscard]] const ConfirmEvent& event() const { return event_; }

 private:
  [[nodiscard]] ConfirmLimits usual_limits() const;
  void try_winners();
  void finish_try();
  /// Every winner of those that were shown together is left out once.
  void start_leaving_out();
  /// By its own times alone: all of the winner's are below all that it has to be better than.
  [[nodiscard]] static bool is_clear(const TuningSite& site);
  void leave_out_next();
  void finish_left_out();
  void keep_shown();
  void drop_least_gain();
  void finish(ConfirmVerdict verdict);

  const TuningOptions& options_;
  TuningObserver& observer_;
  TuningSites& sites_;
  bool bounded_ = true;
  std::optional<Comparison> comparison_;  ///< absent: decided
  ConfirmEvent event_;
  std::vector<SiteIndex> tried_;
  bool shown_ = false;      ///< the region was, with the winners together
  bool has_less_ = false;   ///< than what was shown together
  int left_out_pairs_ = 0;  ///< most for one site
  Scatter pair_scatter_;    ///< of what was shown together
  std::deque<SiteIndex> to_leave_out_;
  std::optional<SiteIndex> left_out_;  ///< what is compared is the region without this winner
};

}  // namespace contextune
