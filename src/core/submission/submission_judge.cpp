#include "core/submission/submission_judge.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>

#include "core/search/confirm.hpp"
#include "core/trials/statistics.hpp"

namespace contextune {
namespace {

/// Ratios in the first look at each submission, and of those that may be the best.
constexpr std::size_t first_ratios = 2;
constexpr std::size_t more_ratios = 4;
constexpr std::size_t most_contenders = 3;
/// Ratios of a submission that looks slow in judge_one(), so that the middle ratio says so.
constexpr std::size_t ratios_of_slow = 3;

/// Other sizes are not tried of a kind that is slower than as written by more than this.
constexpr double hopeless_kind = 0.05;

/// How many of the screened are compared with as written before it stays.
constexpr std::size_t most_compared = 3;

/// Groups of kernels that are compared: halves, then halves of that which gains most, and so on.
constexpr std::size_t most_kernel_groups = 6;
constexpr double tail_of_kernel_group = 0.01;

/// Together they show a gain that is none as rarely as one comparison does elsewhere.
constexpr double tails[most_compared] = {0.040, 0.005, 0.005};

/// Few equal samples prove little.
constexpr double least_ratio_noise = 0.003;

/// The logarithm of a gain as a share of the time before.
double share(double log_gain) {
  return 1 - std::exp(-log_gain);
}

/// A machine may be slower for a moment, but not by this much.
constexpr double beyond_a_moment = 0.25;

struct Judged {
  Comparison::Verdict verdict = Comparison::Verdict::Open;
  double gain = 0;
  double low = 0;
  double high = 0;
  std::size_t pairs = 0;  ///< that were looked at
  std::size_t needed = 0;
  Scatter scatter;
};

class Judge {
 public:
  Judge(const SubmissionState& state, const SubmissionChoices& choices,
        const SubmissionLimits& limits, std::span<const Submission> unmeasurable)
      : state_(state), choices_(choices), limits_(limits), unmeasurable_(unmeasurable) {}

  [[nodiscard]] SubmissionJudgement judge();
  [[nodiscard]] SubmissionJudgement judge_winner_again();

 private:
  void judge_all(const std::vector<Submission>& first);
  void judge_one(const std::vector<Submission>& first);
  /// The kind that gains most as a rule.
  [[nodiscard]] static Submission usual(const std::vector<Submission>& kinds);
  [[nodiscard]] const std::vector<double>* ratios_of(const Submission& submission) const;
  [[nodiscard]] double ratio(const Submission& submission) const {
    return screened_ratio(state_, submission);
  }
  [[nodiscard]] bool is_unmeasurable(const Submission& submission) const;
  [[nodiscard]] bool is_screened(const Submission& submission, std::size_t ratios) const;
  [[nodiscard]] std::vector<Submission> kinds() const;
  [[nodiscard]] std::vector<Submission> other_sizes(const std::vector<Submission>& kinds) const;
  /// A difference of two ratios that noise does not explain.
  [[nodiscard]] double clear(const Submission& submission, std::size_t other) const;
  [[nodiscard]] bool is_clearly_slower(const Submission& submission) const;
  [[nodiscard]] bool gathered_in_vain() const;
  void measure_noise();
  void order(std::vector<Submission>& submissions) const;

  [[nodiscard]] Judged judged(const Submission& candidate, const Submission& against,
                              const Scatter& known = {}, double tail = 0.05) const;
  [[nodiscard]] static Judged judged(const SubmissionPairs& pairs, const ConfirmLimits& limits);
  [[nodiscard]] bool screen(std::vector<Submission> submissions, std::size_t ratios);
  /// True: this comparison has to go on first.
  bool compare(const Submission& candidate, const Submission& against, const Judged& judged);
  [[nodiscard]] bool is_kept(const Judged& judged) const {
    return judged.verdict == Comparison::Verdict::Faster && judged.gain >= limits_.margin;
  }
  void keep(const Submission& winner, const Judged& judged);
  void leave_out(const Submission& whole, const Judged& of_whole);
  /// Chains without the kernels that lose by it, or those alone that win.
  void choose_kernels(const std::string& why);
  void settle(std::string why);

  const SubmissionState& state_;
  const SubmissionChoices& choices_;
  const SubmissionLimits& limits_;
  std::span<const Submission> unmeasurable_;
  double noise_ = least_ratio_noise;
  bool blocked_ = false;
  SubmissionJudgement result_;
};

const std::vector<double>* Judge::ratios_of(const Submission& submission) const {
  for (const ScreenedSubmission& screened : state_.screened)
    if (screened.submission == submission) return &screened.ratios;
  return nullptr;
}

bool Judge::is_unmeasurable(const Submission& submission) const {
  return std::find(unmeasurable_.begin(), unmeasurable_.end(), submission) != unmeasurable_.end();
}

bool Judge::is_screened(const Submission& submission, std::size_t ratios) const {
  const std::vector<double>* found = ratios_of(submission);
  if (found == nullptr || found->empty()) return false;
  return found->size() >= ratios || found->front() >= far_slower;
}

std::vector<Submission> Judge::kinds() const {
  std::vector<Submission> kinds;
  const auto& sizes = choices_.may_gather;
  // The middle size of three.
  const std::uint32_t size = sizes.empty() ? 0 : sizes[sizes.size() / 2];
  if (choices_.may_chain && size != 0) kinds.push_back({true, size});
  if (size != 0) kinds.push_back({false, size});
  if (choices_.may_chain) kinds.push_back({true, 0});
  return kinds;
}

std::vector<Submission> Judge::other_sizes(const std::vector<Submission>& kinds) const {
  double best_ratio = std::numeric_limits<double>::infinity();
  const Submission* best = nullptr;
  const Submission* best_gathered = nullptr;
  for (const Submission& kind : kinds) {
    if (!is_screened(kind, first_ratios)) continue;
    if (best == nullptr || ratio(kind) < best_ratio) {
      best = &kind;
      best_ratio = ratio(kind);
    }
    if (kind.gathered != 0 && (best_gathered == nullptr || ratio(kind) < ratio(*best_gathered)))
      best_gathered = &kind;
  }
  std::vector<Submission> sizes;
  if (best_gathered == nullptr || ratio(*best_gathered) > 1 + hopeless_kind) return sizes;
  if (ratio(*best_gathered) - best_ratio > clear(*best_gathered, first_ratios)) return sizes;
  for (const std::uint32_t size : choices_.may_gather)
    if (size != best_gathered->gathered) sizes.push_back({best_gathered->chained, size});
  return sizes;
}

bool Judge::gathered_in_vain() const {
  return std::any_of(state_.screened.begin(), state_.screened.end(),
                     [](const ScreenedSubmission& screened) {
                       return screened.submission.gathered != 0 && !screened.ratios.empty() &&
                              screened.ratios.front() >= gathers_in_vain;
                     });
}

void Judge::measure_noise() {
  PooledNoise noise;
  for (const ScreenedSubmission& screened : state_.screened)
    if (choices_.allow(screened.submission)) noise.add(screened.ratios);
  noise_ = std::max(noise.relative(), least_ratio_noise);
}

double Judge::clear(const Submission& submission, std::size_t other) const {
  const std::vector<double>* ratios = ratios_of(submission);
  const double own =
      ratios == nullptr ? 1 : static_cast<double>(std::max<std::size_t>(ratios->size(), 1));
  const double error = noise_ * std::sqrt(1 / own + 1 / static_cast<double>(other));
  return std::max(limits_.margin, 2 * error);
}

bool Judge::is_clearly_slower(const Submission& submission) const {
  return ratio(submission) > 1 + clear(submission, first_ratios);
}

void Judge::order(std::vector<Submission>& submissions) const {
  std::stable_sort(submissions.begin(), submissions.end(),
                   [&](const Submission& a, const Submission& b) { return ratio(a) < ratio(b); });
}

Judged Judge::judged(const Submission& candidate, const Submission& against, const Scatter& known,
                     double tail) const {
  ConfirmLimits limits;
  // Looks are at as many pairs of either beginning.
  limits.min_pairs = std::max(2, (limits_.min_pairs + 1) / 2 * 2);
  limits.max_pairs = std::max(limits.min_pairs, limits_.max_pairs / 2 * 2);
  limits.known = known;
  limits.tail = tail;
  limits.without_order = true;
  static const SubmissionPairs none;
  const SubmissionPairs* pairs = &none;
  for (const SubmissionPairs& one : state_.pairs)
    if (one.candidate == candidate && one.against == against) pairs = &one;
  const Judged at_once = judged(*pairs, limits);
  if (!against.is_as_written() || at_once.verdict != Comparison::Verdict::Faster ||
      at_once.low > beyond_a_moment || !(state_.block_seconds > 0))
    return at_once;
  // Samples are relative: a block as written takes 1.
  limits.min_seconds = limits_.min_seconds / state_.block_seconds;
  return judged(*pairs, limits);
}

Judged Judge::judged(const SubmissionPairs& pairs, const ConfirmLimits& limits) {
  Comparison comparison(limits);
  std::size_t used = 0;
  while (!comparison.batch().empty()) {
    const std::size_t looked_at = used + comparison.batch().size() / 2;
    if (std::min(pairs.against_first.size(), pairs.candidate_first.size()) < looked_at / 2) break;
    std::vector<RegionSample> samples;
    for (std::size_t i = 0; i < comparison.batch().size(); ++i) {
      const std::size_t pair = used + i / 2;
      const auto& gains = pair % 2 == 0 ? pairs.against_first : pairs.candidate_first;
      samples.push_back({comparison.batch()[i] ? 1 - gains[pair / 2] : 1, 0});
    }
    comparison.complete(samples);
    used = looked_at;
  }
  return {comparison.verdict(),
          share(comparison.gain()),
          share(comparison.bound()),
          share(2 * comparison.gain() - comparison.bound()),
          used,
          used + comparison.batch().size() / 2,
          comparison.scatter_of_gains()};
}

bool Judge::screen(std::vector<Submission> submissions, std::size_t ratios) {
  std::erase_if(submissions,
                [&](const Submission& submission) { return is_screened(submission, ratios); });
  const std::size_t all = submissions.size();
  std::erase_if(submissions,
                [&](const Submission& submission) { return is_unmeasurable(submission); });
  blocked_ |= submissions.size() != all;
  if (submissions.empty()) return false;
  result_.step.kind = SubmissionStep::Kind::Screen;
  result_.step.screened = std::move(submissions);
  result_.step.ratios = ratios;
  return true;
}

bool Judge::compare(const Submission& candidate, const Submission& against, const Judged& judged) {
  if (judged.verdict != Comparison::Verdict::Open) return false;
  if (is_unmeasurable(candidate) || is_unmeasurable(against)) {
    blocked_ = true;
    return false;
  }
  result_.step.kind = SubmissionStep::Kind::Compare;
  result_.step.candidate = candidate;
  result_.step.against = against;
  result_.step.pairs = judged.needed;
  return true;
}

void Judge::keep(const Submission& winner, const Judged& judged) {
  result_.verdict.winner = winner;
  result_.verdict.gain = judged.gain;
  result_.verdict.low = judged.low;
  result_.verdict.high = judged.high;
  result_.verdict.pairs = static_cast<int>(judged.pairs);
  result_.verdict.why = "the region was shown to be faster with it";
}

void Judge::settle(std::string why) {
  // A submission that could not be measured in this run may be in the next.
  if (blocked_) {
    result_.step.kind = SubmissionStep::Kind::Blocked;
    return;
  }
  result_.step.kind = SubmissionStep::Kind::Settled;
  result_.verdict.settled = true;
  if (!why.empty()) result_.verdict.why = std::move(why);
}

SubmissionJudgement Judge::judge() {
  std::vector<Submission> first = kinds();
  if (first.empty()) {
    settle("there is nothing to try");
  } else if (limits_.few_blocks) {
    judge_one(first);
  } else {
    judge_all(first);
  }
  return std::move(result_);
}

SubmissionJudgement Judge::judge_winner_again() {
  const Submission& winner = state_.verdict.winner;
  const Judged with = judged(winner, {});
  if (!compare(winner, {}, with)) {
    if (is_kept(with)) keep(winner, with);
    settle(is_kept(with) ? "" : "the winner of an earlier run is not faster now");
  }
  if (result_.step.kind != SubmissionStep::Kind::Settled) result_.verdict = state_.verdict;
  return std::move(result_);
}

Submission Judge::usual(const std::vector<Submission>& kinds) {
  for (const Submission& kind : kinds)
    if (!kind.chained) return kind;
  return kinds.front();
}

void Judge::judge_one(const std::vector<Submission>& first) {
  std::vector<Submission> contenders = first;
  std::erase_if(contenders,
                [&](const Submission& kind) { return !is_screened(kind, first_ratios); });
  const auto is_gathered = [](const Submission& kind) { return kind.gathered != 0; };
  if (std::none_of(contenders.begin(), contenders.end(), is_gathered) &&
      std::find(contenders.begin(), contenders.end(), usual(first)) == contenders.end())
    contenders.push_back(usual(first));
  if (gathered_in_vain()) std::erase_if(contenders, is_gathered);
  if (screen(contenders, 1)) return;
  // It needs no graphs, and gains where launches are not what the program waits for. Where blocks
  // said nothing of the others, they would say nothing of it.
  const Submission chained{true, 0};
  if (choices_.may_chain && !blocked_ &&
      std::find(contenders.begin(), contenders.end(), chained) == contenders.end())
    contenders.push_back(chained);
  if (screen(contenders, 1)) return;
  // A single ratio says little.
  const auto is_slow = [&](const Submission& contender) {
    return ratio(contender) > 1 + beyond_a_moment;
  };
  std::vector<Submission> slow;
  std::copy_if(contenders.begin(), contenders.end(), std::back_inserter(slow), is_slow);
  if (screen(slow, ratios_of_slow)) return;
  std::erase_if(contenders, [&](const Submission& contender) {
    return !is_screened(contender, 1) || is_slow(contender);
  });
  if (contenders.empty()) return settle("nothing else was as fast");
  order(contenders);
  for (std::size_t i = 0; i < std::min(contenders.size(), most_compared); ++i) {
    if (i > 0 && ratio(contenders[i]) > 1 - limits_.margin) break;
    const Judged with = judged(contenders[i], {}, {}, tails[i]);
    if (compare(contenders[i], {}, with)) return;
    if (!is_kept(with)) continue;
    keep(contenders[i], with);
    return settle({});
  }
  settle("no gain of at least the margin was shown");
}

void Judge::judge_all(const std::vector<Submission>& first) {
  std::vector<Submission> tried = first;
  if (gathered_in_vain())
    std::erase_if(tried, [](const Submission& submission) { return submission.gathered != 0; });
  if (screen(tried, first_ratios)) return;
  measure_noise();
  const std::vector<Submission> sizes = other_sizes(first);
  if (screen(sizes, first_ratios)) return;
  measure_noise();

  std::vector<Submission> contenders = first;
  contenders.insert(contenders.end(), sizes.begin(), sizes.end());
  std::erase_if(contenders, [&](const Submission& submission) {
    return !is_screened(submission, first_ratios) || is_clearly_slower(submission);
  });
  if (contenders.empty()) return choose_kernels("nothing else was as fast");
  order(contenders);
  // Those that may be the best are looked at twice; their second ratios change their order.
  const double best = ratio(contenders.front());
  std::vector<Submission> close;
  for (const Submission& contender : contenders) {
    if (close.size() < most_contenders && ratio(contender) - best <= clear(contender, first_ratios))
      close.push_back(contender);
  }
  if (close.size() > 1 && screen(close, more_ratios)) return;

  for (std::size_t i = 0; i < std::min(contenders.size(), most_compared); ++i) {
    // A gain that the screen does not promise is not worth another try.
    if (i > 0 && ratio(contenders[i]) > 1 - limits_.margin) break;
    const Judged with = judged(contenders[i], {}, {}, tails[i]);
    if (compare(contenders[i], {}, with)) return;
    if (is_kept(with)) return leave_out(contenders[i], with);
  }
  choose_kernels("no gain of at least the margin was shown");
}

void Judge::leave_out(const Submission& whole, const Judged& of_whole) {
  keep(whole, of_whole);
  if (!whole.chained || whole.gathered == 0) return choose_kernels({});
  for (const Submission& rest : {Submission{false, whole.gathered}, Submission{true, 0}}) {
    const Judged with = judged(whole, rest, of_whole.scatter);
    if (compare(whole, rest, with)) return;
    // It has to be worth what it does to launches that were not measured.
    const bool is_worth_it =
        with.verdict == Comparison::Verdict::Faster && with.gain >= limits_.margin / 2;
    if (is_worth_it) continue;
    // The other half alone may do; it has to be shown as the whole was.
    const Judged alone = judged(rest, {}, of_whole.scatter);
    if (compare(rest, {}, alone)) return;
    if (!is_kept(alone)) continue;
    keep(rest, alone);
    break;
  }
  choose_kernels({});
}

void Judge::choose_kernels(const std::string& why) {
  Submission winner = result_.verdict.winner;
  if (!choices_.may_chain ||
      (!winner.chained && ratio({true, winner.gathered}) > 1 + beyond_a_moment)) {
    return settle(why);
  }
  if (!state_.kernels) {
    result_.step.kind = SubmissionStep::Kind::NumberKernels;
    return;
  }
  const std::uint32_t all = (1U << state_.kernels->size()) - 1;
  const auto chained_in = [&](const Submission& one) {
    return one.chained ? all & ~one.ordinary : 0;
  };
  /// Kernels to be left out where the winner chains them, or to be chained where it does not.
  struct Group {
    std::uint32_t kernels;
    double gain;  ///< of the group that it is a half of
  };
  std::vector<Group> groups;
  const auto add_halves = [&](std::uint32_t kernels, double gain) {
    if (std::popcount(kernels) < 2) return;
    std::uint32_t upper = kernels;
    for (int i = std::popcount(kernels) / 2; i > 0; --i) upper &= upper - 1;
    groups.push_back({kernels & ~upper, gain});
    groups.push_back({upper, gain});
  };
  add_halves(all, 0);
  for (std::size_t i = 0; i < most_kernel_groups && !groups.empty(); ++i) {
    const auto next =
        std::max_element(groups.begin(), groups.end(),
                         [](const Group& a, const Group& b) { return a.gain < b.gain; });
    const std::uint32_t kernels = next->kernels;
    groups.erase(next);
    const std::uint32_t chained = chained_in(winner) ^ kernels;
    if (chained == 0) continue;
    const Submission candidate{true, winner.gathered, all & ~chained};
    if (is_unmeasurable(candidate)) continue;  // graphs that the program keeps changing
    const Judged with = judged(candidate, winner, {}, tail_of_kernel_group);
    if (compare(candidate, winner, with)) return;
    add_halves(kernels, with.gain);
    if (!is_kept(with)) continue;
    const Judged alone =
        winner.is_as_written() ? with : judged(candidate, {}, with.scatter, tail_of_kernel_group);
    if (compare(candidate, {}, alone)) return;
    if (!is_kept(alone)) continue;
    keep(candidate, alone);
    winner = candidate;
  }
  settle(why);
}

}  // namespace

bool SubmissionChoices::allow(const Submission& submission) const {
  if (submission.chained && !may_chain) return false;
  return submission.gathered == 0 ||
         std::find(may_gather.begin(), may_gather.end(), submission.gathered) != may_gather.end();
}

double screened_ratio(const SubmissionState& state, const Submission& submission) {
  for (const ScreenedSubmission& screened : state.screened)
    if (screened.submission == submission) {
      std::vector<double> logs;
      for (const double ratio : screened.ratios) logs.push_back(std::log(ratio));
      return std::exp(median(logs));
    }
  return no_sample;
}

std::vector<double> gains_of_pairs(const SubmissionState& state, const Submission& way) {
  std::vector<double> gains;
  for (const SubmissionPairs& pairs : state.pairs) {
    if (pairs.candidate != way || !pairs.against.is_as_written()) continue;
    // They ran by turns.
    for (std::size_t i = 0; i < std::max(pairs.against_first.size(), pairs.candidate_first.size());
         ++i) {
      for (const auto* order : {&pairs.against_first, &pairs.candidate_first})
        if (i < order->size()) gains.push_back(-std::expm1(-(*order)[i]));
    }
  }
  return gains;
}

void forget_chaining(SubmissionState& state) {
  std::erase_if(state.screened,
                [](const ScreenedSubmission& one) { return one.submission.chained; });
  std::erase_if(state.pairs, [](const SubmissionPairs& one) {
    return one.candidate.chained || one.against.chained;
  });
  state.verdict.settled = false;
}

std::optional<SubmissionVerdict> verdict_of_all(const SubmissionState& state,
                                                const SubmissionLimits& limits, std::size_t least) {
  // The best of several looks better than it is.
  constexpr double tail = 0.01;
  std::optional<SubmissionVerdict> best;
  for (const ScreenedSubmission& screened : state.screened) {
    if (!state.choices.allow(screened.submission)) continue;  // any more
    std::vector<double> gains;
    for (const double ratio : screened.ratios) gains.push_back(-std::log(ratio));
    for (const SubmissionPairs& pairs : state.pairs) {
      if (pairs.candidate != screened.submission || !pairs.against.is_as_written()) continue;
      gains.insert(gains.end(), pairs.against_first.begin(), pairs.against_first.end());
      gains.insert(gains.end(), pairs.candidate_first.begin(), pairs.candidate_first.end());
    }
    if (gains.size() < std::max<std::size_t>(least, 2)) continue;
    const Bound bound = paired_bound(gains, tail);
    SubmissionVerdict verdict;
    verdict.settled = true;
    verdict.winner = screened.submission;
    verdict.gain = share(bound.mean);
    verdict.low = share(bound.low);
    verdict.high = share(2 * bound.mean - bound.low);
    verdict.pairs = static_cast<int>(gains.size());
    verdict.why = "all blocks that were measured show it to be faster";
    // Not so either where a time was none, and its logarithm is no number.
    if (!(verdict.low >= limits.margin) || (best && verdict.low <= best->low)) continue;
    best = verdict;
  }
  return best;
}

SubmissionJudgement judge_submissions(const SubmissionState& state,
                                      const SubmissionChoices& choices,
                                      const SubmissionLimits& limits,
                                      std::span<const Submission> unmeasurable) {
  return Judge(state, choices, limits, unmeasurable).judge();
}

SubmissionJudgement judge_winner_again(const SubmissionState& state, const SubmissionLimits& limits,
                                       std::span<const Submission> unmeasurable) {
  return Judge(state, state.choices, limits, unmeasurable).judge_winner_again();
}

}  // namespace contextune
