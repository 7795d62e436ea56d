#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include <contextune/options.hpp>

namespace contextune {

/// In place of a sample that is not there, and of a figure that is made of none. Samples are
/// finite.
inline constexpr double no_sample = std::numeric_limits<double>::quiet_NaN();

[[nodiscard]] double mean(std::span<const double> samples);
/// The mean of the two in the middle where their number is even.
[[nodiscard]] double median(std::span<const double> samples);
[[nodiscard]] double minimum(std::span<const double> samples);

/// Cost of a config from its samples.
[[nodiscard]] double cost_of(std::span<const double> samples, Selection selection);

/// Standard deviation; 0 for fewer than two samples.
[[nodiscard]] double deviation(std::span<const double> samples);

/// Relative noise of several groups of samples, each around its own centre: median absolute
/// deviation, scaled to a standard deviation and corrected for the small groups. A single outlier
/// in a group does not move it. 0 where no group has two samples.
class PooledNoise {
 public:
  void add(std::span<const double> group);
  [[nodiscard]] double relative() const;
  [[nodiscard]] std::size_t degrees() const { return degrees_; }

 private:
  std::vector<double> residuals_;
  std::size_t degrees_ = 0;
};

/// Student's t: what a standard t variable stays below with probability 1 - tail.
/// @param tail above 0, below 0.5
[[nodiscard]] double t_quantile(double tail, std::size_t degrees);

/// How samples scatter, and how many say so.
struct Scatter {
  double deviation = 0;
  std::size_t degrees = 0;
};

/// A mean with its one-sided lower bound.
struct Bound {
  double mean = 0;
  double low = 0;
  double error = 0;  ///< standard error of the mean
  Scatter scatter;   ///< of the pairs
};

/// Of many samples, one in so many is trimmed at each end.
inline constexpr std::size_t trim_of_many = 10;
/// Of few samples, that one in five is trimmed lets no single one decide.
inline constexpr std::size_t trim_of_few = 5;

/// Bound of the mean of paired gains, 10 % trimmed at each end (Tukey and McLaughlin), so that one
/// interrupted pass among many does not decide. -inf for fewer than two pairs.
/// @param known of gains like these, from before
/// @param fitted what was estimated from the gains and taken off them before
/// @param one_in one gain in so many is trimmed at each end
[[nodiscard]] Bound paired_bound(std::span<const double> gains, double tail,
                                 const Scatter& known = {}, std::size_t fitted = 0,
                                 std::size_t one_in = trim_of_many);

/// A figure with what it lies between, at some confidence.
struct Interval {
  double middle = 0;
  double low = 0;
  double high = 0;
};

/// How much `b` is above `a`, two means of samples that are no pairs (Yuen and Welch).
/// @param tail at either end. Infinitely wide where a scatter is not known.
[[nodiscard]] Interval difference(const Bound& a, const Bound& b, double tail);

/// Takes off the gains what depends on which state of a pair came first: in work that grows,
/// shrinks or alternates, that is not scatter. The gains of even and of odd places began alike.
[[nodiscard]] std::vector<double> without_order(std::span<const double> gains);

}  // namespace contextune
