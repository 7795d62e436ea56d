#include "cli/compare/change.hpp"

#include <algorithm>
#include <cmath>

#include "core/trials/statistics.hpp"

namespace contextune::cli {
namespace {

constexpr double tail_of_word = 0.025;  // at either end
/// A share of all tries in which an interval may miss.
constexpr double may_miss = 0.05;

Change judged(const Interval& logarithm, double margin) {
  Change change;
  change.ratio = std::exp(logarithm.middle);
  change.low = std::exp(logarithm.low);
  change.high = std::exp(logarithm.high);
  const double border = std::log1p(margin);
  if (logarithm.high < -border) {
    change.word = Word::Faster;
  } else if (logarithm.low > border) {
    change.word = Word::Slower;
  } else if (logarithm.low >= -border && logarithm.high <= border) {
    change.word = Word::Same;
  } else {
    change.why = "the interval crosses the margin";
  }
  return change;
}

Change unclear(const std::string& why) {
  Change change;
  change.why = why;
  return change;
}

// "A: no samples"; what both lack is said once.
std::string lacking(const std::string& a, const std::string& b) {
  if (a == b) return a;
  return (a.empty() ? "" : "A: " + a) + (a.empty() || b.empty() ? "" : "; ") +
         (b.empty() ? "" : "B: " + b);
}

std::string too_few(const MeasuredTime& a, const MeasuredTime& b) {
  return "too few samples (A " + std::to_string(a.count) + ", B " + std::to_string(b.count) + ")";
}

std::vector<double> logarithms_of(const std::vector<double>& samples) {
  std::vector<double> logarithms;
  logarithms.reserve(samples.size());
  for (const double sample : samples) logarithms.push_back(std::log(sample));
  return logarithms;
}

// Samples that a coarse clock has made equal do not say that there is no scatter: its steps count
// as scatter of equal distribution, which more samples do not make less.
Bound bound_of(const MeasuredTime& time, double resolution) {
  Bound bound = paired_bound(logarithms_of(time.samples), tail_of_word, {}, 0, trim_of_few);
  bound.error = std::hypot(bound.error, resolution / (std::sqrt(12.0) * time.median));
  return bound;
}

double resolution_of_both(const MeasuredTime& a, const MeasuredTime& b) {
  std::vector<double> values = a.samples;
  values.insert(values.end(), b.samples.begin(), b.samples.end());
  return resolution_of(std::move(values));
}

Change change_of_samples(const MeasuredTime& a, const MeasuredTime& b, double margin) {
  if (std::min(a.count, b.count) < fewest_samples) return unclear(too_few(a, b));
  const double both = a.resolution > 0 && b.resolution > 0 ? 0 : resolution_of_both(a, b);
  return judged(difference(bound_of(a, a.resolution > 0 ? a.resolution : both),
                           bound_of(b, b.resolution > 0 ? b.resolution : both), tail_of_word),
                margin);
}

// How likely all samples of one side are beyond all of the other, where there is no difference.
double chance_of_apart(std::size_t a, std::size_t b) {
  double chance = 2;
  for (std::size_t i = 1; i <= a; ++i)
    chance *= static_cast<double>(i) / static_cast<double>(b + i);
  return chance;
}

Change change_of_ranges(const MeasuredTime& a, const MeasuredTime& b, double margin) {
  if (chance_of_apart(a.count, b.count) > may_miss) return unclear(too_few(a, b));
  const auto low = [](const MeasuredTime& time) { return time.fastest - time.resolution / 2; };
  const auto high = [](const MeasuredTime& time) { return time.slowest + time.resolution / 2; };
  if (!(low(a) > 0) || !(low(b) > 0)) return unclear("the clock is too coarse");
  return judged(
      {std::log(b.median / a.median), std::log(low(b) / high(a)), std::log(high(b) / low(a))},
      margin);
}

bool has_range(const MeasuredTime& time) {
  return time.count > 0 && time.fastest > 0 && std::isfinite(time.slowest);
}

std::string lacks_gain(const MeasuredGain& one) {
  if (one.is_none) return {};
  if (!one.lacking.empty()) return one.lacking;
  return one.gain < 1 && one.bound < 1 && one.pairs >= 2 ? "" : "the gain has no bound";
}

// The confirmation may have looked several times, and each of its looks is surer than this takes
// them to be: the error is rather too large.
Bound bound_of(const MeasuredGain& one) {
  if (one.is_none) return {};
  constexpr double of_confirmation = 0.05;
  Bound bound;
  bound.mean = std::log1p(-one.gain);
  bound.scatter.degrees = one.pairs - 1 - 2 * (one.pairs / trim_of_many);
  bound.error = std::max(0.0, std::log1p(-one.bound) - bound.mean) /
                t_quantile(of_confirmation, bound.scatter.degrees);
  return bound;
}

}  // namespace

std::string_view to_string(Word word) {
  switch (word) {
    case Word::Same:
      return "SAME";
    case Word::Faster:
      return "FASTER";
    case Word::Slower:
      return "SLOWER";
    case Word::Unclear:
      break;
  }
  return "UNCLEAR";
}

Change change_of(const MeasuredTime& a, const MeasuredTime& b, double margin) {
  if (!a.lacking.empty() || !b.lacking.empty()) {
    Change change = unclear(lacking(a.lacking, b.lacking));
    if (a.median > 0 && b.median > 0) change.ratio = b.median / a.median;
    return change;
  }
  Change change = !a.samples.empty() && !b.samples.empty() ? change_of_samples(a, b, margin)
                  : has_range(a) && has_range(b)           ? change_of_ranges(a, b, margin)
                                                           : unclear("no samples");
  if (std::isnan(change.ratio) && a.median > 0 && b.median > 0) change.ratio = b.median / a.median;
  return change;
}

Change change_of(const MeasuredGain& a, const MeasuredGain& b, double margin) {
  const std::string why = lacking(lacks_gain(a), lacks_gain(b));
  if (!why.empty()) return unclear(why);
  return judged(difference(bound_of(a), bound_of(b), tail_of_word), margin);
}

double resolution_of(std::vector<double> values) {
  std::ranges::sort(values);
  double least = 0;
  for (std::size_t i = 1; i < values.size(); ++i) {
    const double distance = values[i] - values[i - 1];
    // The log has six digits.
    const bool is_equal = distance <= 2e-6 * values[i];
    if (!is_equal && (least == 0 || distance < least)) least = distance;
  }
  return least;
}

}  // namespace contextune::cli
