#include "intercept/submission/measured_blocks.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "log/events.hpp"

namespace contextune::intercept {
namespace {

constexpr std::uint64_t look_every_ns = 20'000;
/// At most one in so many launches of a block may have been held in vain: a graph was not there
/// yet.
constexpr std::uint64_t most_disturbed_share = 8;
/// An entry that takes longer is left for one that repeats inside of it.
constexpr std::uint64_t longest_entry_ns = 5'000'000;

}  // namespace

void MeasuredBlocks::begin(SubmissionEvents::Event at) {
  if (at == nullptr) return;
  SubmissionBlock& block = open_.emplace();
  block.begin = std::move(at);
  block.period = period_.id();
  block.disturbed = in_use_.disturbed();
  block.attempts = in_use_.graphs().totals().attempts;
  block.began_ns = monotonic_ns();
  costs_.charge(*search_, in_use_);
  // Before it is known how long blocks are, and that one ends unbroken, nothing is tried.
  if (size_.is_known()) block.number = next_++;
  const Submission planned =
      block.number ? search_->plan(*block.number) : search_->verdict().winner;
  if (planned != in_use_.submission()) in_use_.use(planned, false);
  block.submission = planned;
}

MeasuredBlocks::Entry MeasuredBlocks::enter(std::uint64_t now, CUstream stream) {
  SubmissionBlock& block = *open_;
  ++block.entries;
  if (!block.number && size_.ns_of(1) == 0) probe(stream);
  // A host that launches ahead is done with a block long before the GPU is.
  const std::uint64_t took = std::max(now - block.began_ns, size_.ns_of(block.entries));
  if (!size_.is_complete(block, took, now - costs_.first_ns(), search_->may_gather(),
                         period_.unbroken_entries())) {
    return Entry::Within;
  }
  return took > block.entries * longest_entry_ns ? Entry::Overlong : Entry::Completes;
}

void MeasuredBlocks::add(bool is_of_graph, CUstream stream) {
  if (!open_) return;
  ++(is_of_graph ? open_->graphs : open_->launches);
  in_flight_.add(open_->submission, open_->number.value_or(next_), stream);
}

SubmissionEvents::Event MeasuredBlocks::end(CUstream stream, bool& counts) {
  SubmissionBlock block = *std::exchange(open_, std::nullopt);
  counts = block.number.has_value();
  search_->saw_block(block.launches != 0);
  SubmissionEvents::Event end = events_.record(stream);
  if (!counts) return end;
  size_.keeps();
  if (end == nullptr) {
    search_->spoiled(*block.number);
    return end;
  }
  block.end = end;
  if ((in_use_.disturbed() - block.disturbed) * most_disturbed_share >
          block.launches + block.graphs ||
      in_use_.graphs().totals().attempts != block.attempts) {
    search_->spoiled(*block.number);
  } else {
    pending_.push_back(std::move(block));
  }
  return end;
}

void MeasuredBlocks::drop_open() {
  if (open_ && open_->number) search_->spoiled(*open_->number);
  open_.reset();
}

void MeasuredBlocks::rest() {
  drop_open();
  const Submission& winner = search_->verdict().winner;
  if (winner != in_use_.submission()) in_use_.use(winner, false);
}

bool MeasuredBlocks::break_open() {
  drop_open();
  if (!size_.loses(period_.unbroken_entries()) || period_.only_launches()) return false;
  size_.keeps();
  size_.forget_periods();
  return true;
}

void MeasuredBlocks::follow() {
  drop_open();
  size_.follow(period_.id());
}

void MeasuredBlocks::probe(CUstream stream) {
  if (!std::has_single_bit(open_->entries) || !events_.are_possible()) return;
  read_probe();
  // Another period's may end while this one goes on.
  if (size_.ns_of(1) != 0 || (probe_ && probe_->period != period_.id())) return;
  if (SubmissionEvents::Event end = events_.record(stream)) {
    probe_ = *open_;
    probe_->end = std::move(end);
    in_use_.submitter().want_other_calls(true);
  }
}

void MeasuredBlocks::read_probe() {
  if (!probe_) return;
  const std::optional<double> seconds = events_.seconds_between(*probe_->begin, *probe_->end);
  if (!seconds) return;
  learn(*probe_, *seconds);
  probe_.reset();
}

void MeasuredBlocks::learn(const SubmissionBlock& block, double seconds) {
  size_.learn(block, seconds, block.period == period_.id());
}

bool MeasuredBlocks::is_time_to_read() noexcept {
  const std::uint64_t now = monotonic_ns();
  if (now - looked_ns_ < look_every_ns) return false;
  looked_ns_ = now;
  return true;
}

void MeasuredBlocks::read() {
  read_probe();
  while (!pending_.empty()) {
    const SubmissionBlock& block = pending_.front();
    const auto seconds = events_.seconds_between(*block.begin, *block.end);
    if (!seconds) break;
    if (*seconds > 0) {
      in_flight_.ended(*block.number);
      seconds_ += *seconds;
      if (block.submission.is_as_written()) learn(block, *seconds);
      // Entries of several periods do not compare; what they take beside the first ones does.
      search_->measured(*block.number, *seconds, size_.work_of(block));
      log::write_block(log_.lines(), StoredSubmission::region, *block.number,
                       text_of(block.submission), *seconds, block.entries);
    } else {
      search_->spoiled(*block.number);
    }
    pending_.pop_front();
  }
}

void MeasuredBlocks::lose_events() {
  drop_open();
  for (const SubmissionBlock& block : pending_) search_->spoiled(*block.number);
  pending_.clear();
  probe_.reset();
}

}  // namespace contextune::intercept
