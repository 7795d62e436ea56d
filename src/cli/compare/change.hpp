#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "log/run_report.hpp"

namespace contextune::cli {

/// How B is beside A.
enum class Word { Same, Faster, Slower, Unclear };
/// "SAME", "FASTER", "SLOWER", "UNCLEAR".
[[nodiscard]] std::string_view to_string(Word word);

/// Fewer samples of one side have no interval that could be believed.
inline constexpr std::size_t fewest_samples = 3;

/// A time as one side knows it. Times are seconds.
struct MeasuredTime {
  double median = log::not_known;
  std::vector<double> samples;  ///< empty where none were kept: then the next three count
  std::size_t count = 0;
  double fastest = log::not_known;
  double slowest = log::not_known;
  double resolution = 0;  ///< of its clock, as its figures show it; 0: not known
  int rank = -1;          ///< that measured it; -1: it is of no one rank
  std::string lacking;    ///< why there is neither: a clause
};

/// A share of the default's time that was saved, as a confirmation says it.
struct MeasuredGain {
  double gain = log::not_known;
  double bound = log::not_known;  ///< one-sided, 95 %
  std::uint64_t pairs = 0;
  bool is_none = false;  ///< the defaults run: there is nothing to be measured
  std::string lacking;   ///< why there is no gain: a clause
};

/// What became of a time from A to B.
struct Change {
  Word word = Word::Unclear;
  double ratio = log::not_known;  ///< of B's to A's
  double low = log::not_known;    ///< of its 95 % interval
  double high = log::not_known;
  std::string why;  ///< it is unclear: a clause
};

/// SAME where the interval lies from 1 / (1 + margin) to 1 + margin, UNCLEAR where it crosses a
/// border. Of samples, the interval is that of the difference of the trimmed means of their
/// logarithms. Where only the fastest and the slowest are known, it goes from the one side's
/// fastest over the other's slowest to the reverse.
[[nodiscard]] Change change_of(const MeasuredTime& a, const MeasuredTime& b, double margin);

/// The same of the share of the default's time that is left: how fast the machines are cancels.
[[nodiscard]] Change change_of(const MeasuredGain& a, const MeasuredGain& b, double margin);

/// The smallest distance of two of the values that are not equal; 0: there are no two.
[[nodiscard]] double resolution_of(std::vector<double> values);

}  // namespace contextune::cli
