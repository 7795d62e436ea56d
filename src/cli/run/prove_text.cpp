#include "cli/run/prove_text.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include "cli/words/colour.hpp"
#include "cli/words/text.hpp"
#include "core/trials/statistics.hpp"
#include "core/value/parse_number.hpp"

namespace contextune::cli {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Takes "12", "1,024.5" or "3e-05" off the front.
void skip_number(std::string_view& text) {
  std::size_t i = 0;
  const auto digits = [&] {
    while (i < text.size() && is_digit(text[i])) ++i;
  };
  digits();
  while (i + 1 < text.size() && (text[i] == '.' || text[i] == ',') && is_digit(text[i + 1])) {
    ++i;
    digits();
  }
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    std::size_t exponent = i + 1;
    if (exponent < text.size() && (text[exponent] == '-' || text[exponent] == '+')) ++exponent;
    if (exponent < text.size() && is_digit(text[exponent])) {
      i = exponent;
      digits();
    }
  }
  text.remove_prefix(i);
}

std::string masked(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    if (is_digit(text.front())) {
      result += '#';
      skip_number(text);
    } else if (text.front() == ' ') {
      result += ' ';
      text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    } else {
      result += text.front();
      text.remove_prefix(1);
    }
  }
  return result;
}

std::string end_text(int wait_status) {
  return WIFSIGNALED(wait_status) ? "signal " + std::to_string(WTERMSIG(wait_status))
                                  : "status " + std::to_string(WEXITSTATUS(wait_status));
}

std::string output_line(const Proof& proof) {
  if (proof.tuned == Likeness::Same && proof.bare == Likeness::Same)
    return std::string("the same in every byte") +
           (proof.has_clock ? " but for what --clock matches" : "");
  if (proof.tuned == Likeness::Different) {
    return proof.bare == Likeness::Different
               ? "differs, and differs between bare runs as well: nothing can be said of it"
               : "DIFFERS between bare and tuned runs, in more than numbers";
  }
  std::string text = "the same but for numbers, of which lines with times may differ";
  return text + (proof.bare == Likeness::Same ? "; bare runs agree in every byte"
                                              : "; bare runs differ among themselves as well");
}

// " 1.21 times as fast (...): tuned is faster"
std::string speedup_text(const Speedup& speedup, std::size_t pairs) {
  const std::string verdict = speedup.low > 1    ? in_tone(Tone::Good, "tuned is faster")
                              : speedup.high < 1 ? in_tone(Tone::Bad, "tuned is SLOWER")
                                                 : "no difference is shown";
  return " (medians): " + ratio_text(speedup.ratio) + " times as fast (median of " +
         count_text(pairs, "pair", "pairs") + ", 95 % interval " + ratio_text(speedup.low) +
         " to " + ratio_text(speedup.high) + "): " + verdict + "\n";
}

Speedup speedup_of(const std::vector<double>& bare, const std::vector<double>& tuned) {
  std::vector<double> logarithms;
  for (std::size_t i = 0; i < std::min(bare.size(), tuned.size()); ++i)
    logarithms.push_back(std::log(bare[i] / tuned[i]));
  constexpr double tail = 0.025;  // at either end
  const Bound bound = paired_bound(logarithms, tail);
  return {median(bare), median(tuned), std::exp(median(logarithms)), std::exp(bound.low),
          std::exp(2 * bound.mean - bound.low)};
}

// The number in text as people write it: 1,024.5 or 3e-05. NaN: it is none, or not positive.
double number_of(std::string text) {
  std::erase(text, ',');
  const auto number = parse_number<double>(text);
  return number && *number > 0 && std::isfinite(*number) ? *number
                                                         : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

Likeness likeness(std::string_view one, std::string_view other) {
  if (one == other) return Likeness::Same;
  return masked(one) == masked(other) ? Likeness::SameButNumbers : Likeness::Different;
}

bool Proof::holds() const {
  return same_status && (tuned != Likeness::Different || bare == Likeness::Different);
}

double take_time(std::string& output, const std::regex& clock) {
  // The library's matcher needs stack for each character.
  constexpr std::ptrdiff_t longest_line = 4096;
  double time = std::numeric_limits<double>::quiet_NaN();
  std::string rest;
  for (auto line = output.cbegin(); line != output.cend();) {
    const auto end = std::find(line, output.cend(), '\n');
    std::smatch match;
    if (end - line <= longest_line && std::regex_search(line, end, match, clock)) {
      if (match[1].matched) time = number_of(match.str(1));
      rest.append(line, match[0].first);
      line = match[0].second;
    }
    rest.append(line, end);
    if (end != output.cend()) rest += '\n';
    line = end == output.cend() ? end : end + 1;
  }
  output = std::move(rest);
  return time;
}

Proof proof_of(const std::vector<ProvedRun>& runs) {
  Proof proof;
  std::vector<double> bare;
  std::vector<double> tuned;
  std::vector<double> own_bare;
  std::vector<double> own_tuned;
  for (const ProvedRun& run : runs) {
    (run.tuned ? tuned : bare).push_back(run.seconds);
    proof.has_clock = proof.has_clock || run.own_time.has_value();
    if (run.own_time > 0.0) (run.tuned ? own_tuned : own_bare).push_back(*run.own_time);
    Likeness& least = run.tuned ? proof.tuned : proof.bare;
    least = std::max(least, likeness(runs.front().output, run.output));
    proof.same_status = proof.same_status && run.wait_status == runs.front().wait_status;
  }
  proof.wall = speedup_of(bare, tuned);
  if (own_bare.size() + own_tuned.size() == runs.size())
    proof.own = speedup_of(own_bare, own_tuned);
  return proof;
}

std::string proof_text(const Proof& proof, const std::vector<ProvedRun>& runs) {
  std::string text = "  output     " + output_line(proof) + "\n  end        ";
  if (proof.same_status) {
    text += end_text(runs.front().wait_status) + " each time\n";
  } else {
    const auto other = std::ranges::find_if(
        runs, [&](const ProvedRun& run) { return run.wait_status != runs.front().wait_status; });
    text += "DIFFERS: " + end_text(runs.front().wait_status) + " in the first bare run, " +
            end_text(other->wait_status) + " in a " + (other->tuned ? "tuned" : "bare") + " one\n";
  }
  text += "  wall time  " + time_text(proof.wall.bare) + " bare, " + time_text(proof.wall.tuned) +
          " tuned" + speedup_text(proof.wall, runs.size() / 2);
  if (!proof.own) return text;
  std::array<char, 64> medians{};
  (void)std::snprintf(medians.data(), medians.size(), "%.5g bare, %.5g tuned", proof.own->bare,
                      proof.own->tuned);
  return text + "  own clock  " + medians.data() + speedup_text(*proof.own, runs.size() / 2);
}

}  // namespace contextune::cli
