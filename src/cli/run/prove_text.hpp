#pragma once

#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

namespace contextune::cli {

/// A run of a program.
struct ProvedRun {
  bool tuned = false;
  double seconds = 0;
  int wait_status = 0;
  std::string output;
  /// In whatever unit it prints; NaN: it printed none. Absent: no clock was asked for.
  std::optional<double> own_time;
};

/// The number in the expression's first group, in the last line that has one; NaN: there is none.
/// @param output loses what the expression matches, once in each line: times are not compared
[[nodiscard]] double take_time(std::string& output, const std::regex& clock);

/// How an output is like another.
enum class Likeness { Same, SameButNumbers, Different };

/// Numbers may be times; blanks before them may be there to align them.
[[nodiscard]] Likeness likeness(std::string_view one, std::string_view other);

/// How much longer bare runs take than tuned ones.
struct Speedup {
  double bare = 0;  ///< medians
  double tuned = 0;
  double ratio = 0;  ///< bare over tuned: median of the pairs
  double low = 0;    ///< its 95 % interval
  double high = 0;
};

/// The result of all runs together, the first of them bare.
struct Proof {
  Likeness tuned = Likeness::Same;  ///< the least like of the tuned runs, to the first bare one
  Likeness bare = Likeness::Same;   ///< of the other bare runs
  bool same_status = true;
  bool has_clock = false;      ///< outputs are compared without what its expression matches
  Speedup wall;                ///< in seconds
  std::optional<Speedup> own;  ///< by the program's own clock, where all runs have one

  /// Whether the tuned runs did what bare ones do.
  [[nodiscard]] bool holds() const;
};

/// @param runs in pairs, each of a bare and a tuned run in either order; the first is bare
[[nodiscard]] Proof proof_of(const std::vector<ProvedRun>& runs);

/// Several lines for a person.
[[nodiscard]] std::string proof_text(const Proof& proof, const std::vector<ProvedRun>& runs);

}  // namespace contextune::cli
