#include "core/trials/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <vector>

namespace contextune {
namespace {

double normal_quantile(double tail) {
  // Bisection on erfc: exact enough, and there is no table to get wrong.
  double low = 0;
  double high = 40;
  for (int i = 0; i < 80; ++i) {
    const double middle = (low + high) / 2;
    (std::erfc(middle / std::sqrt(2.0)) / 2 > tail ? low : high) = middle;
  }
  return low;
}

}  // namespace

double mean(std::span<const double> samples) {
  if (samples.empty()) return no_sample;
  return std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
}

double median(std::span<const double> samples) {
  if (samples.empty()) return no_sample;
  std::vector<double> sorted(samples.begin(), samples.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  if (sorted.size() % 2 == 1) return *middle;
  return (*std::max_element(sorted.begin(), middle) + *middle) / 2;
}

double minimum(std::span<const double> samples) {
  return samples.empty() ? no_sample : *std::min_element(samples.begin(), samples.end());
}

double cost_of(std::span<const double> samples, Selection selection) {
  switch (selection) {
    case Selection::Mean:
      return mean(samples);
    case Selection::Min:
      return minimum(samples);
    case Selection::Median:
      break;
  }
  return median(samples);
}

double deviation(std::span<const double> samples) {
  if (samples.size() < 2) return 0;
  const double centre = mean(samples);
  double sum = 0;
  for (const double sample : samples) sum += (sample - centre) * (sample - centre);
  return std::sqrt(sum / static_cast<double>(samples.size() - 1));
}

void PooledNoise::add(std::span<const double> group) {
  if (group.size() < 2) return;
  const double centre = median(group);
  if (!(centre > 0)) return;
  // Residuals around a group's own median are too small in even groups, as two samples share it; in
  // odd ones the sample in the middle is its own centre and says nothing. The factors were found by
  // simulation and hold within 3 %.
  const bool odd = group.size() % 2 == 1;
  const double correction = odd                 ? 1
                            : group.size() == 2 ? std::numbers::sqrt2
                                                : 1 + 1.5 / static_cast<double>(group.size());
  std::vector<double> distances;
  for (const double sample : group)
    distances.push_back(std::fabs(sample / centre - 1) * correction);
  if (odd) distances.erase(std::min_element(distances.begin(), distances.end()));
  residuals_.insert(residuals_.end(), distances.begin(), distances.end());
  degrees_ += group.size() - 1;
}

double PooledNoise::relative() const {
  return residuals_.empty() ? 0 : 1.4826 * median(residuals_);
}

double t_quantile(double tail, std::size_t degrees) {
  if (degrees == 0) return std::numeric_limits<double>::infinity();
  if (degrees > 400) return normal_quantile(tail);
  // P(T > t) in closed form for whole degrees of freedom, inverted by bisection.
  const bool odd = degrees % 2 == 1;
  const auto above = [&](double t) {
    const double theta = std::atan(t / std::sqrt(static_cast<double>(degrees)));
    const double cosine = std::cos(theta);
    double term = 1;
    double sum = 1;
    for (std::size_t k = odd ? 3 : 2; k + 2 <= degrees; k += 2) {
      term *= cosine * cosine * static_cast<double>(k - 1) / static_cast<double>(k);
      sum += term;
    }
    if (!odd) return 0.5 - std::sin(theta) * sum / 2;
    const double inner = degrees == 1 ? 0 : std::sin(theta) * cosine * sum;
    return 0.5 - (theta + inner) / std::numbers::pi;
  };
  double low = 0;
  double high = 1e6;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (above(middle) > tail ? low : high) = middle;
  }
  return low;
}

Bound paired_bound(std::span<const double> gains, double tail, const Scatter& known,
                   std::size_t fitted, std::size_t one_in) {
  if (gains.size() < 2 + fitted) {
    const double infinite = std::numeric_limits<double>::infinity();
    return {mean(gains), -infinite, infinite, known};
  }
  std::vector<double> sorted(gains.begin(), gains.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t n = sorted.size();
  const std::size_t cut = n / one_in;
  const std::span<const double> kept(sorted.data() + cut, n - 2 * cut);
  std::vector<double> winsorized = sorted;
  for (std::size_t i = 0; i < cut; ++i) {
    winsorized[i] = sorted[cut];
    winsorized[n - 1 - i] = sorted[n - 1 - cut];
  }
  const double share = static_cast<double>(kept.size()) / static_cast<double>(n);
  const auto all_degrees = static_cast<double>(n - 1);
  Scatter scatter{
      deviation(winsorized) * std::sqrt(all_degrees / (all_degrees - static_cast<double>(fitted))),
      kept.size() - 1 - fitted};
  if (known.degrees > 0) {
    const auto weighed = [](const Scatter& one) {
      return one.deviation * one.deviation * static_cast<double>(one.degrees);
    };
    const std::size_t degrees = scatter.degrees + known.degrees;
    scatter = {std::sqrt((weighed(scatter) + weighed(known)) / static_cast<double>(degrees)),
               degrees};
  }
  const double error = scatter.deviation / (share * std::sqrt(static_cast<double>(n)));
  const double centre = mean(kept);
  return {centre, centre - t_quantile(tail, scatter.degrees) * error, error, scatter};
}

Interval difference(const Bound& a, const Bound& b, double tail) {
  const double middle = b.mean - a.mean;
  const double error = std::hypot(a.error, b.error);
  if (!std::isfinite(error)) return {middle, -error, error};
  if (error == 0) return {middle, middle, middle};
  // Welch and Satterthwaite; whole degrees, rounded down but for what arithmetic makes.
  constexpr double rounding = 1e-9;
  const auto share = [&](const Bound& one) {
    const double part = one.error / error;
    return one.scatter.degrees == 0 || part == 0
               ? 0
               : part * part * part * part / static_cast<double>(one.scatter.degrees);
  };
  const double shares = share(a) + share(b);
  const double most = static_cast<double>(a.scatter.degrees + b.scatter.degrees);
  const double degrees = shares > 0 ? std::min(1 / shares, most) : most;
  const double half = t_quantile(tail, static_cast<std::size_t>(degrees + rounding)) * error;
  return {middle, middle - half, middle + half};
}

std::vector<double> without_order(std::span<const double> gains) {
  std::vector<double> of_order[2];
  for (std::size_t i = 0; i < gains.size(); ++i) of_order[i % 2].push_back(gains[i]);
  std::vector<double> rest(gains.begin(), gains.end());
  if (of_order[1].empty()) return rest;
  const double half = (median(of_order[0]) - median(of_order[1])) / 2;
  for (std::size_t i = 0; i < rest.size(); ++i) rest[i] += i % 2 == 0 ? -half : half;
  return rest;
}

}  // namespace contextune
