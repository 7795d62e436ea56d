#include "core/submission/submission_search.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "core/trials/statistics.hpp"

namespace contextune {
namespace {

/// Without a result for so many blocks, a block counts as spoiled.
constexpr std::uint64_t lost_after = 1024;

/// So many failures in a row: it cannot be measured in this run.
constexpr int most_failures = 16;

/// How far blocks as written may be from a block that is compared with them.
constexpr std::uint64_t screen_reach = 32;
constexpr std::uint64_t charge_reach = 8;

/// How much longer a block may take of which nothing is known, in times of it as written. A host
/// that spins on mapped memory takes ten times as long where its launches are held back.
constexpr double risk_of_gathered = 9;
constexpr double risk_of_others = 1;

/// Blocks of graphs alone, for each with launches that came before.
constexpr std::uint64_t prelude_share = 4;

std::size_t even_pairs(int pairs) {
  return static_cast<std::size_t>(std::max(2, (pairs + 1) / 2 * 2));
}

/// Whether runs before this one had few blocks.
bool had_few_blocks(const SubmissionState& state) {
  constexpr std::size_t few = 32;
  if (state.lacks_images) return false;  // a part of them was forgotten
  std::size_t blocks = 0;
  for (const ScreenedSubmission& screened : state.screened) blocks += screened.ratios.size();
  for (const SubmissionPairs& pairs : state.pairs)
    blocks += 2 * (pairs.against_first.size() + pairs.candidate_first.size());
  return state.runs > 0 && blocks < few * static_cast<std::size_t>(state.runs);
}

/// The sequence of Thue and Morse.
bool is_swapped(std::size_t number) {
  bool odd = false;
  for (; number != 0; number &= number - 1) odd = !odd;
  return odd;
}

}  // namespace

SubmissionSearch::SubmissionSearch(SubmissionChoices choices, const SubmissionLimits& limits,
                                   SubmissionState earlier)
    : choices_(std::move(choices)),
      limits_(limits),
      state_(std::move(earlier)),
      budget_(limits.max_slowdown, limits.grace_seconds) {
  // The same program with the same arguments takes as long again, or half as long at least.
  budget_.elapsed(state_.run_seconds / 2);
  if (state_.choices != choices_) {
    // Times of other kernels say nothing of these.
    if (state_.choices.rules != choices_.rules) {
      state_.screened.clear();
      state_.pairs.clear();
      state_.kernels.reset();
    }
    state_.choices = choices_;
    state_.verdict = {};
    state_.doubted = false;
    state_.runs = 0;
  }
  limits_.few_blocks = limits_.few_blocks || had_few_blocks(state_);
  if (settled()) {
    step_.kind = SubmissionStep::Kind::Settled;
  } else {
    advance();
    if (state_.runs >= limits_.max_runs) state_ = state();
  }
}

Submission SubmissionSearch::plan(std::uint64_t block) {
  assert(!last_block_ || block > *last_block_);
  last_block_ = block;
  if (settled()) return state_.verdict.winner;
  count_run();
  while (!planned_.empty() && planned_.begin()->first + lost_after <= block)
    spoiled(planned_.begin()->first);
  if (half_pair_) {
    const std::uint64_t first = *half_pair_;
    assert(open_pairs_.count(first) == 1);
    const Pair& pair = open_pairs_[first];
    if (block == first + 1) {
      half_pair_.reset();
      return run(block, pair.candidate_first ? pair.against : pair.candidate, Role::Second, first);
    }
    // Its blocks are no neighbours.
    const Submission candidate = pair.candidate;
    give_up_half_pair();
    fail(candidate);
  }
  if (step_.kind == SubmissionStep::Kind::Screen) return plan_screened(block);
  if (step_.kind == SubmissionStep::Kind::Compare) return plan_pair(block);
  return idle(block);
}

Submission SubmissionSearch::run(std::uint64_t block, const Submission& submission, Role role,
                                 std::uint64_t pair) {
  const double risk = submission == state_.verdict.winner ? 0 : risk_of(submission);
  budget_.hold(risk);
  planned_[block] = {submission, role, pair, risk};
  return submission;
}

Submission SubmissionSearch::idle(std::uint64_t block) {
  return run(block, state_.verdict.winner, Role::Idle);
}

void SubmissionSearch::number_kernels(std::vector<std::uint64_t> kernels) {
  if (!wants_kernels()) return;
  if (kernels.size() > most_numbered_kernels) kernels.resize(most_numbered_kernels);
  state_.kernels = std::move(kernels);
  advance();
}

void SubmissionSearch::saw_block(bool has_launches) {
  graph_blocks_.others += has_launches ? 1 : 0;
  graph_blocks_.in_a_row = has_launches ? 0 : graph_blocks_.in_a_row + 1;
  // A few steps before the graph is captured are no part of what the program repeats.
  const bool has_only_graphs = graph_blocks_.in_a_row > prelude_share * graph_blocks_.others;
  if (std::exchange(graph_blocks_.are_all, has_only_graphs) == has_only_graphs) return;
  if (!settled() && !takes_turns() && screen_.under_way == 0 && !half_pair_) advance();
}

double SubmissionSearch::known_ratio(const Submission& submission) const {
  // Without some kernels, it is as it was with all of them, more or less.
  const double screened = screened_ratio(state_, {submission.chained, submission.gathered});
  if (!std::isnan(screened)) return screened;
  for (const Use& use : uses_)
    if (use.submission == submission && use.ratio > 0) return use.ratio;
  return no_sample;
}

double SubmissionSearch::gathered_ratio() const {
  double most = no_sample;
  for (const ScreenedSubmission& other : state_.screened)
    if (other.submission.gathered != 0)
      most = std::fmax(most, screened_ratio(state_, other.submission));
  for (const Use& use : uses_)
    if (use.submission.gathered != 0 && use.ratio > 0) most = std::fmax(most, use.ratio);
  return most;
}

double SubmissionSearch::risk_of(const Submission& submission) const {
  if (submission.is_as_written()) return 0;
  const double block = state_.block_seconds > 0 ? state_.block_seconds : limits_.block_seconds;
  if (!(block > 0)) return std::numeric_limits<double>::infinity();
  const double own = known_ratio(submission);
  if (!std::isnan(own)) return block * std::max(0.0, own - 1);
  if (submission.gathered == 0) return block * risk_of_others;
  const double others = gathered_ratio();
  return block * (std::isnan(others) ? risk_of_gathered : std::max(risk_of_others, others - 1));
}

bool SubmissionSearch::may_run(const Submission& submission) const {
  if (submission == state_.verdict.winner || takes_turns()) return true;
  if (!budget_.covers(submission, risk_of(submission))) return false;
  // The first gathered block goes alone: what held launches do to a host is much the same however
  // many are held.
  return submission.gathered == 0 || gathered_ratio() < gathers_in_vain ||
         std::none_of(planned_.begin(), planned_.end(),
                      [](const auto& planned) { return planned.second.submission.gathered != 0; });
}

int SubmissionSearch::missing_warm_ups(const Submission& submission) const {
  // A check begins with the program's first blocks, which are slower however they go out.
  if (submission.gathered == 0 && !state_.doubted && !takes_turns()) return 0;
  // Where blocks are short, graphs take longer than one. The pair begins with the third then.
  const int wanted = limits_.warm_up_blocks + (limits_.few_blocks ? 1 : 0);
  for (const Use& use : uses_)
    if (use.submission == submission) return wanted - use.warm_ups;
  return wanted;
}

bool SubmissionSearch::is_far_slower(const Submission& submission) const {
  return std::any_of(
      screen_.measured.begin(), screen_.measured.end(), [&](const Screened& screened) {
        const double ratio = screened.an_entry / as_written_near(screened.block, screen_reach);
        if (screened.submission == submission) return ratio >= far_slower;
        return screened.submission.gathered != 0 && submission.gathered != 0 &&
               ratio >= gathers_in_vain;
      });
}

Submission SubmissionSearch::plan_screened(std::uint64_t block) {
  while (!screen_.queue.empty() && is_far_slower(screen_.queue.front().submission))
    screen_.queue.pop_front();
  if (screen_.queue.empty()) {
    if (screen_.under_way != 0) return use_wait(block);
    advance();
    // The next step differs, or has blocks to run.
    if (step_.kind == SubmissionStep::Kind::Compare) return plan_pair(block);
    if (screen_.queue.empty()) return idle(block);
  }
  const Queued next = screen_.queue.front();
  if (!may_run(next.submission)) return use_wait(block);
  screen_.queue.pop_front();
  ++screen_.under_way;
  if (next.role == Role::WarmUp) ++use_of(next.submission).warm_ups;
  return run(block, next.submission, next.role);
}

Submission SubmissionSearch::plan_pair(std::uint64_t block) {
  // Results come some blocks late. Rather than idle until the next look, the search begins pairs
  // for the look after it, too; where pairs risk nothing, it begins all that there may be.
  const bool is_free = risk_of(step_.candidate) + risk_of(step_.against) == 0;
  const std::size_t all = even_pairs(limits_.max_pairs);
  const std::size_t most =
      takes_turns() ? step_.pairs : (is_free ? all : std::min(2 * step_.pairs, all));
  if (!may_run(step_.candidate) || !may_run(step_.against)) return idle(block);
  for (const Submission& one : {step_.candidate, step_.against})
    if (missing_warm_ups(one) > 0) {
      ++use_of(one).warm_ups;
      return run(block, one, Role::Idle);
    }
  return begin_pair(block, step_.candidate, step_.against, most);
}

Submission SubmissionSearch::begin_pair(std::uint64_t block, const Submission& candidate,
                                        const Submission& against, std::size_t most) {
  const SubmissionPairs& pairs = pairs_of(candidate, against);
  std::size_t swapped = pairs.candidate_first.size();
  std::size_t straight = pairs.against_first.size();
  for (const auto& [first, pair] : open_pairs_) {
    if (pair.candidate != candidate || pair.against != against) continue;
    ++(pair.candidate_first ? swapped : straight);
  }
  if (std::min(swapped, straight) >= most / 2) return idle(block);
  // Where work alternates, what comes first is then always the same.
  if (block % 2 == 1) return idle(block);
  const bool candidate_first = swapped == straight ? is_swapped(swapped) : swapped < straight;
  open_pairs_[block] = {candidate, against, candidate_first, 0, 0};
  half_pair_ = block;
  return run(block, candidate_first ? candidate : against, Role::First, block);
}

Submission SubmissionSearch::use_wait(std::uint64_t block) {
  std::optional<Submission> best;
  double best_ratio = 1 - limits_.margin;
  for (const ScreenedSubmission& screened : state_.screened) {
    const double ratio = screened_ratio(state_, screened.submission);
    if (!(ratio < best_ratio) || !choices_.allow(screened.submission)) continue;
    best_ratio = ratio;
    best = screened.submission;
  }
  if (!best || missing_warm_ups(*best) > 0 || !may_run(*best)) return idle(block);
  return begin_pair(block, *best, {}, even_pairs(limits_.max_pairs));
}

std::optional<SubmissionSearch::Planned> SubmissionSearch::take(std::uint64_t block) {
  const auto at = planned_.find(block);
  if (at == planned_.end()) return std::nullopt;
  const Planned planned = at->second;
  planned_.erase(at);
  budget_.release(planned.risk);
  return planned;
}

void SubmissionSearch::measured(std::uint64_t block, double seconds, double work) {
  if (!(seconds > 0) || !std::isfinite(seconds) || !(work > 0)) return spoiled(block);
  const std::optional<Planned> planned = take(block);
  if (!planned) return;
  const double an_entry = seconds / work;
  if (planned->submission.is_as_written()) {
    state_.block_seconds = seconds;
    as_written_[block] = an_entry;
    if (as_written_.size() > 4 * screen_reach) as_written_.erase(as_written_.begin());
  } else {
    charge(*planned, block, seconds, an_entry);
  }
  if (planned->role == Role::WarmUp || planned->role == Role::Screen) {
    if (planned->role == Role::Screen && !planned->submission.is_as_written())
      screen_.measured.push_back({planned->submission, block, an_entry});
    // Either it is the first of its kind or it gathers in vain: the next block tells.
    if (planned->role == Role::WarmUp &&
        an_entry >= gathers_in_vain * as_written_near(block, charge_reach))
      screen_.queue.push_front({planned->submission});
    --screen_.under_way;
    if (screen_.is_through()) advance();
  } else if (planned->role == Role::First || planned->role == Role::Second) {
    complete_pair(planned->pair, planned->role, an_entry);
  }
}

void SubmissionSearch::spoiled(std::uint64_t block) {
  const std::optional<Planned> planned = take(block);
  if (!planned) return;
  // It may have cost what was feared.
  budget_.spend(planned->risk);
  if (planned->role == Role::WarmUp || planned->role == Role::Screen) {
    if (!planned->submission.is_as_written()) fail(planned->submission);
    --screen_.under_way;
    if (screen_.is_through()) advance();
  } else if (planned->role == Role::First || planned->role == Role::Second) {
    const auto pair = open_pairs_.find(planned->pair);
    if (pair == open_pairs_.end()) return;
    const Submission candidate = pair->second.candidate;
    if (half_pair_ == planned->pair) half_pair_.reset();
    open_pairs_.erase(pair);
    fail(candidate);
  }
}

void SubmissionSearch::complete_pair(std::uint64_t first_block, Role role, double an_entry) {
  const auto at = open_pairs_.find(first_block);
  if (at == open_pairs_.end()) return;
  (role == Role::First ? at->second.first : at->second.second) = an_entry;
  const Pair pair = at->second;
  if (pair.first == 0 || pair.second == 0) return;
  open_pairs_.erase(at);
  use_of(pair.candidate).failures = 0;
  const double gain =
      std::log(pair.candidate_first ? pair.second / pair.first : pair.first / pair.second);
  SubmissionPairs& pairs = pairs_of(pair.candidate, pair.against);
  (pair.candidate_first ? pairs.candidate_first : pairs.against_first).push_back(gain);
  if (takes_turns()) return forget_old_turns();
  if (step_.kind != SubmissionStep::Kind::Compare || pair.candidate != step_.candidate ||
      pair.against != step_.against)
    return;
  if (std::min(pairs.candidate_first.size(), pairs.against_first.size()) < step_.pairs / 2) return;
  advance();
}

void SubmissionSearch::charge(const Planned& planned, std::uint64_t block, double seconds,
                              double an_entry) {
  const Submission& submission = planned.submission;
  double ratio = an_entry / as_written_near(block, charge_reach);
  if (std::isnan(ratio)) ratio = screened_ratio(state_, submission);
  if (std::isnan(ratio)) ratio = an_entry / as_written_near(block, lost_after);
  if (std::isnan(ratio)) return budget_.spend(planned.risk);
  budget_.expose(submission, seconds * (1 - 1 / ratio));
  use_of(submission).ratio = ratio;
}

void SubmissionSearch::fail(const Submission& submission) {
  if (takes_turns() || ++use_of(submission).failures < most_failures) return;
  if (step_.kind == SubmissionStep::Kind::Compare) advance();
}

void SubmissionSearch::give_up_half_pair() {
  if (!half_pair_) return;
  open_pairs_.erase(*half_pair_);
  half_pair_.reset();
}

void SubmissionSearch::advance() {
  for (const Screened& screened : screen_.measured) {
    int& failures = use_of(screened.submission).failures;
    failures = std::isnan(as_written_near(screened.block, screen_reach)) ? failures + 1 : 0;
  }
  add_ratios(state_);
  screen_.measured.clear();
  std::vector<Submission> unmeasurable;
  for (const Use& use : uses_)
    if (use.failures >= most_failures) unmeasurable.push_back(use.submission);
  SubmissionJudgement judgement = judge(unmeasurable);
  state_.verdict = std::move(judgement.verdict);
  if (judgement.step.candidate != step_.candidate || judgement.step.against != step_.against)
    give_up_half_pair();
  step_ = std::move(judgement.step);
  queue_screen();
}

void SubmissionSearch::queue_screen() {
  assert(screen_.under_way == 0);
  screen_.queue.clear();
  if (step_.kind != SubmissionStep::Kind::Screen) return;
  const auto missing = [&](const Submission& submission) {
    for (const ScreenedSubmission& screened : state_.screened)
      if (screened.submission == submission)
        return step_.ratios - std::min(step_.ratios, screened.ratios.size());
    return step_.ratios;
  };
  // The first says how slow those are that warm up.
  screen_.queue.push_back({});
  for (const Submission& submission : step_.screened)
    for (int i = missing_warm_ups(submission); i > 0; --i)
      screen_.queue.push_back({submission, Role::WarmUp});
  // There and back, between blocks as written: each is measured in an even and in an odd place.
  if (screen_.queue.size() > 1) screen_.queue.push_back({});
  for (const Submission& submission : step_.screened)
    if (missing(submission) > 1) screen_.queue.push_back({submission});
  // NOLINTNEXTLINE(modernize-loop-convert): clang 14 has no views of libstdc++
  for (auto at = step_.screened.rbegin(); at != step_.screened.rend(); ++at)
    screen_.queue.push_back({*at});
  screen_.queue.push_back({});
}

SubmissionJudgement SubmissionSearch::judge(std::span<const Submission> unmeasurable) {
  if (state_.doubted) {
    SubmissionJudgement judgement = judge_winner_again(state_, limits_, unmeasurable);
    if (judgement.step.kind != SubmissionStep::Kind::Settled) return judgement;
    state_.doubted = false;
    if (!judgement.verdict.winner.is_as_written()) return judgement;
    // Only the pairs of now say anything of it.
    const SubmissionPairs failed = pairs_of(state_.verdict.winner, {});
    state_.screened.clear();
    state_.pairs = {failed};
    state_.runs = 1;
  }
  SubmissionChoices worth_trying = choices_;
  // With nothing else to try, the search would be settled before any launch has come.
  if (graph_blocks_.are_all && choices_.may_chain) worth_trying.may_gather.clear();
  return judge_submissions(state_, worth_trying, limits_, unmeasurable);
}

bool SubmissionSearch::doubt_winner(bool same_software) {
  if (!settled() || state_.verdict.winner.is_as_written()) return false;
  if (same_software && !state_.lacks_images) return false;
  state_.doubted = true;
  if (!same_software) state_.runs = 0;
  pairs_of(state_.verdict.winner, {}) = {state_.verdict.winner, {}, {}, {}};
  advance();
  return true;
}

void SubmissionSearch::take_turns(const Submission& submission, std::size_t most) {
  most_turns_ = most;
  state_ = {};
  state_.verdict.winner = submission;
  step_ = {};
  step_.kind = SubmissionStep::Kind::Compare;
  step_.candidate = submission;
  step_.pairs = std::numeric_limits<std::size_t>::max();
}

void SubmissionSearch::forget_old_turns() {
  // Both together, as which of them comes next goes by how many there are of each.
  SubmissionPairs& turns = pairs_of(state_.verdict.winner, {});
  if (std::min(turns.against_first.size(), turns.candidate_first.size()) < most_turns_ / 2) return;
  const auto half = static_cast<std::ptrdiff_t>(most_turns_ / 4);
  for (std::vector<double>* gains : {&turns.against_first, &turns.candidate_first})
    gains->erase(gains->begin(), gains->begin() + half);
}

SubmissionVerdict SubmissionSearch::verdict_of_turns() const {
  SubmissionVerdict verdict = state_.verdict;
  if (state_.pairs.empty()) return verdict;
  const SubmissionPairs& turns = state_.pairs.front();
  std::vector<double> gains = turns.against_first;
  gains.insert(gains.end(), turns.candidate_first.begin(), turns.candidate_first.end());
  const Bound bound = paired_bound(gains, 0.025);
  verdict.gain = -std::expm1(-bound.mean);
  verdict.low = -std::expm1(-bound.low);
  verdict.high = -std::expm1(bound.low - 2 * bound.mean);
  verdict.pairs = static_cast<int>(gains.size());
  return verdict;
}

double SubmissionSearch::as_written_near(std::uint64_t block, std::uint64_t reach) const {
  const auto after = as_written_.lower_bound(block);
  const bool has_after = after != as_written_.end() && after->first - block <= reach;
  const auto before = after == as_written_.begin() ? as_written_.end() : std::prev(after);
  const bool has_before = before != as_written_.end() && block - before->first <= reach;
  if (!has_before) return has_after ? after->second : no_sample;
  if (!has_after) return before->second;
  const double share = static_cast<double>(block - before->first) /
                       static_cast<double>(after->first - before->first);
  // In logarithms, so that work that alternates cancels over a round.
  return before->second * std::pow(after->second / before->second, share);
}

void SubmissionSearch::add_ratios(SubmissionState& state) const {
  for (const Screened& screened : screen_.measured) {
    const double as_written = as_written_near(screened.block, screen_reach);
    if (std::isnan(as_written)) continue;
    const auto at = std::find_if(
        state.screened.begin(), state.screened.end(),
        [&](const ScreenedSubmission& known) { return known.submission == screened.submission; });
    auto& known = at != state.screened.end()
                      ? *at
                      : state.screened.emplace_back(ScreenedSubmission{screened.submission, {}});
    known.ratios.push_back(screened.an_entry / as_written);
  }
}

SubmissionState SubmissionSearch::state() const {
  SubmissionState state = state_;
  add_ratios(state);
  if (state.doubted && state.runs >= limits_.max_runs) {
    state.doubted = false;
    state.verdict = {};
    state.verdict.settled = true;
    state.verdict.why =
        "the winner of earlier runs was not shown again in " + std::to_string(state.runs) + " runs";
  }
  if (state.verdict.settled) return state;
  // By then all else has been decided.
  const bool chooses_kernels = wants_kernels() || (step_.kind == SubmissionStep::Kind::Compare &&
                                                   step_.candidate.ordinary != 0);
  if (chooses_kernels && state.runs > 1) {
    state.verdict.settled = true;
    if (state.verdict.winner.is_as_written()) state.verdict.why = "no gain was shown";
    return state;
  }
  const bool is_last = state.runs >= limits_.max_runs || (is_blocked() && state.runs > 1);
  constexpr std::size_t least = 4;
  if (state.verdict.winner.is_as_written() && state.runs > 1) {
    if (const auto verdict = verdict_of_all(state, limits_, is_last ? least : 2 * least)) {
      state.verdict = *verdict;
    }
  }
  if (!is_last || state.verdict.settled) return state;
  state.verdict.settled = true;
  if (state.verdict.winner.is_as_written())
    state.verdict.why = "no answer in " + std::to_string(state.runs) + " runs";
  return state;
}

SubmissionPairs& SubmissionSearch::pairs_of(const Submission& candidate,
                                            const Submission& against) {
  for (SubmissionPairs& pairs : state_.pairs)
    if (pairs.candidate == candidate && pairs.against == against) return pairs;
  return state_.pairs.emplace_back(SubmissionPairs{candidate, against, {}, {}});
}

SubmissionSearch::Use& SubmissionSearch::use_of(const Submission& submission) {
  for (Use& use : uses_)
    if (use.submission == submission) return use;
  return uses_.emplace_back(Use{submission, 0, 0});
}

}  // namespace contextune
