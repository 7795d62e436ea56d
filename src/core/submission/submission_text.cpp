#include "core/submission/submission_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <functional>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/submission/submission_judge.hpp"

namespace contextune {
namespace {

constexpr std::size_t most_bytes_of_state = 64 << 10;
constexpr std::size_t most_submissions = 64;
constexpr std::size_t most_figures = 4096;

template <typename Number>
std::string number_word(Number number) {
  std::array<char, 32> word{};  // the longest double has 24 characters
  return {word.data(), std::to_chars(word.data(), word.data() + word.size(), number).ptr};
}

template <typename Number>
std::string words_of(const std::vector<Number>& numbers) {
  std::string words;
  for (const Number number : numbers) words += (words.empty() ? "" : ",") + number_word(number);
  return words;
}

std::string submission_word(const Submission& submission) {
  return (submission.chained ? "c" : "") + number_word(submission.gathered) +
         (submission.ordinary != 0 ? '-' + number_word(submission.ordinary) : std::string());
}

bool is_plain(char c) {
  return c >= ' ' && c <= '~' && c != '%';
}

std::string escaped(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string plain;
  for (const char c : text) {
    if (is_plain(c)) {
      plain += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      plain.append({'%', digits[byte / 16U], digits[byte % 16U]});
    }
  }
  return plain;
}

std::string written(const SubmissionState& state) {
  const SubmissionVerdict& verdict = state.verdict;
  std::string text =
      "1 runs=" + number_word(state.runs) +
      " chain=" + number_word(static_cast<int>(state.choices.may_chain)) +
      " gather=" + words_of(state.choices.may_gather) +
      (state.choices.rules != 0 ? " rules=" + number_word(state.choices.rules) : "") +
      " block=" + number_word(state.block_seconds) +
      " settled=" + number_word(static_cast<int>(verdict.settled)) +
      " winner=" + submission_word(verdict.winner) + " gain=" + number_word(verdict.gain) +
      " low=" + number_word(verdict.low) + " high=" + number_word(verdict.high) +
      " pairs=" + number_word(verdict.pairs);
  if (state.run_seconds > 0) text += " seconds=" + number_word(state.run_seconds);
  if (state.kernels) text += " kernels=" + words_of(*state.kernels);
  if (!state.images.empty()) text += " images=" + words_of(state.images);
  if (state.lacks_images) text += " lacking";
  if (state.doubted) text += " doubted";
  for (const ScreenedSubmission& one : state.screened)
    text += " screen=" + submission_word(one.submission) + ':' + words_of(one.ratios);
  for (const SubmissionPairs& one : state.pairs)
    text += " pair=" + submission_word(one.candidate) + '/' + submission_word(one.against) + ':' +
            words_of(one.against_first) + '/' + words_of(one.candidate_first);
  return text + " why=" + escaped(verdict.why);
}

/// Each function takes what it is named after from the front of the text, or returns false.
class SubmissionReader {
 public:
  explicit SubmissionReader(std::string_view text) : rest_(text) {}

  bool state(SubmissionState& read) {
    SubmissionVerdict& verdict = read.verdict;
    if (!(word("1 runs=") && number(read.runs) && word(" chain=") && flag(read.choices.may_chain) &&
          word(" gather=") && numbers(read.choices.may_gather, most_submissions) &&
          (!word(" rules=") || number(read.choices.rules)) && word(" block=") &&
          number(read.block_seconds) && word(" settled=") && flag(verdict.settled) &&
          word(" winner=") && submission(verdict.winner) && word(" gain=") &&
          number(verdict.gain) && word(" low=") && number(verdict.low) && word(" high=") &&
          number(verdict.high) && word(" pairs=") && number(verdict.pairs)))
      return false;
    if (word(" seconds=") && !number(read.run_seconds)) return false;
    if (word(" kernels=") && !numbers(read.kernels.emplace(), most_numbered_kernels)) return false;
    if (word(" images=") && !numbers(read.images, most_needed_images)) return false;
    read.lacks_images = word(" lacking");
    read.doubted = word(" doubted");
    while (word(" screen=")) {
      if (read.screened.size() == most_submissions) return false;
      ScreenedSubmission& one = read.screened.emplace_back();
      if (!(submission(one.submission) && word(":") && numbers(one.ratios, most_figures)))
        return false;
    }
    while (word(" pair=")) {
      if (read.pairs.size() == most_submissions) return false;
      SubmissionPairs& one = read.pairs.emplace_back();
      if (!(submission(one.candidate) && word("/") && submission(one.against) && word(":") &&
            numbers(one.against_first, most_figures) && word("/") &&
            numbers(one.candidate_first, most_figures)))
        return false;
    }
    return word(" why=") && unescaped(verdict.why);
  }

 private:
  bool word(std::string_view expected) {
    if (!rest_.starts_with(expected)) return false;
    rest_.remove_prefix(expected.size());
    return true;
  }

  template <typename Number>
  bool number(Number& read) {
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), read);
    if (error != std::errc{}) return false;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    if constexpr (std::is_floating_point_v<Number>) return std::isfinite(read);
    return true;
  }

  bool flag(bool& read) {
    read = rest_.starts_with('1');
    return word("0") || word("1");
  }

  template <typename Number>
  bool numbers(std::vector<Number>& read, std::size_t most) {
    Number next{};
    if (!number(next)) return true;  // an empty list, or what comes next is refused
    read.push_back(next);
    while (word(",")) {
      if (read.size() == most || !number(next)) return false;
      read.push_back(next);
    }
    return true;
  }

  bool submission(Submission& read) {
    read.chained = word("c");
    return number(read.gathered) && (!word("-") || number(read.ordinary));
  }

  bool unescaped(std::string& read) {
    while (!rest_.empty()) {
      char next = rest_.front();
      rest_.remove_prefix(1);
      if (next == '%') {
        unsigned char byte = 0;
        const std::string_view digits = rest_.substr(0, 2);
        const char* const end = digits.data() + digits.size();
        if (std::from_chars(digits.data(), end, byte, 16).ptr != end) return false;
        rest_.remove_prefix(digits.size());
        next = static_cast<char>(byte);
      }
      read += next;
    }
    return true;
  }

  std::string_view rest_;
};

template <typename All, typename IsSame>
bool has_twice(const All& all, IsSame is_same) {
  for (auto one = all.begin(); one != all.end(); ++one)
    if (std::any_of(all.begin(), one, [&](const auto& other) { return is_same(*one, other); }))
      return true;
  return false;
}

bool is_possible(const ScreenedSubmission& screened) {
  return !screened.submission.is_as_written() &&
         std::all_of(screened.ratios.begin(), screened.ratios.end(),
                     [](double ratio) { return ratio > 0; });
}

bool is_possible(const SubmissionPairs& pairs) {
  return !pairs.candidate.is_as_written() && pairs.candidate != pairs.against;
}

bool is_numbered(const SubmissionState& state, const Submission& submission) {
  if (submission.ordinary == 0) return true;
  // Without any kernel it would not be chained.
  return submission.chained && state.kernels &&
         submission.ordinary < (1U << state.kernels->size()) - 1;
}

bool is_possible(const SubmissionState& state) {
  const std::vector<std::uint32_t>& sizes = state.choices.may_gather;
  if (state.runs < 0 || state.verdict.pairs < 0 || state.block_seconds < 0 ||
      state.run_seconds < 0) {
    return false;
  }
  if (!sizes.empty() && sizes.front() == 0) return false;
  if (std::adjacent_find(sizes.begin(), sizes.end(), std::greater_equal<>()) != sizes.end())
    return false;
  // The search runs the winner without asking.
  if (!state.choices.allow(state.verdict.winner)) return false;
  if (!is_numbered(state, state.verdict.winner)) return false;
  if (state.doubted && state.verdict.winner.is_as_written()) return false;
  for (const ScreenedSubmission& one : state.screened)
    if (!is_possible(one) || !is_numbered(state, one.submission)) return false;
  for (const SubmissionPairs& one : state.pairs)
    if (!is_possible(one) || !is_numbered(state, one.candidate) || !is_numbered(state, one.against))
      return false;
  return !has_twice(state.screened, [](const ScreenedSubmission& a, const ScreenedSubmission& b) {
    return a.submission == b.submission;
  }) && !has_twice(state.pairs, [](const SubmissionPairs& a, const SubmissionPairs& b) {
    return a.candidate == b.candidate && a.against == b.against;
  });
}

}  // namespace

std::string text_of(const SubmissionState& state) {
  std::string text = written(state);
  return submission_state_of(text) ? text : std::string();
}

std::optional<SubmissionState> submission_state_of(std::string_view text) {
  if (text.size() > most_bytes_of_state) return std::nullopt;
  std::optional<SubmissionState> state(std::in_place);
  // Numbers may be spelled in several ways, of which one is written.
  if (!SubmissionReader(text).state(*state) || !is_possible(*state) || written(*state) != text)
    state.reset();
  return state;
}

std::string screened_text(const SubmissionState& state) {
  std::string text;
  for (const ScreenedSubmission& screened : state.screened) {
    char ratio[32];
    std::snprintf(ratio, sizeof ratio, " %.3f", screened_ratio(state, screened.submission));
    text += (text.empty() ? "" : ", ") + text_of(screened.submission) + ratio;
  }
  return text;
}

}  // namespace contextune
