#pragma once

#include <span>
#include <vector>

#include "core/trials/region_sample.hpp"
#include "core/trials/statistics.hpp"

namespace contextune {

struct ConfirmLimits {
  int min_pairs = 4;
  int max_pairs = 32;
  /// A gain that shows itself within less time in the region is looked at again, up to max_pairs.
  double min_seconds = 0;
  /// The share of the region's time that a gain has to be above, with that confidence.
  double least_gain = 0;
  /// How gains of such pairs scatter, as an earlier comparison of the same region has shown.
  Scatter known = {};
  /// The comparison may give up after so many pairs; 0: twice min_pairs.
  int pairs_to_give_up = 0;
  /// Which state of a pair came first is known to matter: work that drifts or alternates.
  bool without_order = false;
  /// How likely a gain may be shown that is none, over all looks.
  double tail = 0.05;
};

/// A comparison of two whole states of the region, by alternating passes (A B B A).
/// Looks after min_pairs, twice, four times as many; each look may err with its share of the tail,
/// so that looking often does not make a false gain more likely. Gives up early where more pairs
/// are not going to show a gain; a gain has to last for min_seconds.
class Comparison {
 public:
  enum class Verdict { Open, Faster, NotShown };

  explicit Comparison(const ConfirmLimits& limits);

  /// The next passes: true runs the winners. Empty: decided.
  [[nodiscard]] const std::vector<bool>& batch() const { return batch_; }
  void complete(std::span<const RegionSample> samples);

  [[nodiscard]] Verdict verdict() const { return verdict_; }
  [[nodiscard]] double before() const;                   ///< defaults, seconds; NaN without samples
  [[nodiscard]] double after() const;                    ///< winners
  [[nodiscard]] double gain() const { return gain_; }    ///< share of `before` saved
  [[nodiscard]] double bound() const { return bound_; }  ///< its lower bound at the last look
  /// Of each pair, as they ran.
  [[nodiscard]] const std::vector<double>& gains() const { return gains_; }
  [[nodiscard]] int pairs() const { return static_cast<int>(gains_.size()); }
  /// How the gains scatter, scaled to pairs whose two states take about as long.
  [[nodiscard]] Scatter scatter() const;
  /// How the gains scatter.
  [[nodiscard]] const Scatter& scatter_of_gains() const { return scatter_; }

 private:
  void look();
  [[nodiscard]] double seconds() const;
  [[nodiscard]] bool hopeless(const Bound& bound) const;
  void plan();

  ConfirmLimits limits_;
  int num_looks_ = 1;
  int target_ = 0;  ///< pairs at the next look
  int planned_ = 0;
  std::vector<bool> batch_;
  std::vector<double> gains_;
  std::vector<double> before_;
  std::vector<double> after_;
  double gain_ = 0;
  double bound_ = 0;
  Scatter scatter_;
  Verdict verdict_ = Verdict::Open;
};

}  // namespace contextune
