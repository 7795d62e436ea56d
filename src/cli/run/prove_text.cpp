#include "cli/run/prove_text.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <cmath>

#include "cli/words/text.hpp"
#include "core/search/statistics.hpp"

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
    return "the same in every byte";
  if (proof.tuned == Likeness::Different) {
    return proof.bare == Likeness::Different
               ? "differs, and differs between bare runs as well: nothing can be said of it"
               : "DIFFERS between bare and tuned runs, in more than numbers";
  }
  std::string text = "the same but for numbers, of which lines with times may differ";
  return text + (proof.bare == Likeness::Same ? "; bare runs agree in every byte"
                                              : "; bare runs differ among themselves as well");
}

std::string verdict_of(const Proof& proof) {
  if (proof.low > 1) return "tuned is faster";
  return proof.high < 1 ? "tuned is SLOWER" : "no difference is shown";
}

}  // namespace

Likeness likeness(std::string_view one, std::string_view other) {
  if (one == other) return Likeness::Same;
  return masked(one) == masked(other) ? Likeness::SameButNumbers : Likeness::Different;
}

bool Proof::holds() const {
  return same_status && (tuned != Likeness::Different || bare == Likeness::Different);
}

Proof proof_of(const std::vector<ProvedRun>& runs) {
  Proof proof;
  std::vector<double> bare;
  std::vector<double> tuned;
  for (const ProvedRun& run : runs) {
    (run.tuned ? tuned : bare).push_back(run.seconds);
    Likeness& least = run.tuned ? proof.tuned : proof.bare;
    least = std::max(least, likeness(runs.front().output, run.output));
    proof.same_status = proof.same_status && run.wait_status == runs.front().wait_status;
  }
  std::vector<double> logarithms;
  for (std::size_t i = 0; i < std::min(bare.size(), tuned.size()); ++i)
    logarithms.push_back(std::log(bare[i] / tuned[i]));
  constexpr double tail = 0.025;  // at either end
  const Bound bound = paired_bound(logarithms, tail);
  proof.bare_seconds = median(bare);
  proof.tuned_seconds = median(tuned);
  proof.ratio = std::exp(median(logarithms));
  proof.low = std::exp(bound.low);
  proof.high = std::exp(2 * bound.mean - bound.low);
  return proof;
}

std::string proof_text(const Proof& proof, const std::vector<ProvedRun>& runs) {
  std::string text = "  output     " + output_line(proof) + "\n  end        ";
  if (proof.same_status) {
    text += end_text(runs.front().wait_status) + " each time\n";
  } else {
    const auto other = std::find_if(runs.begin(), runs.end(), [&](const ProvedRun& run) {
      return run.wait_status != runs.front().wait_status;
    });
    text += "DIFFERS: " + end_text(runs.front().wait_status) + " in the first bare run, " +
            end_text(other->wait_status) + " in a " + (other->tuned ? "tuned" : "bare") + " one\n";
  }
  return text + "  wall time  " + time_text(proof.bare_seconds) + " bare, " +
         time_text(proof.tuned_seconds) + " tuned (medians): " + ratio_text(proof.ratio) +
         " times as fast (median of " + count_text(runs.size() / 2, "pair", "pairs") +
         ", 95 % interval " + ratio_text(proof.low) + " to " + ratio_text(proof.high) +
         "): " + verdict_of(proof) + "\n";
}

}  // namespace contextune::cli
