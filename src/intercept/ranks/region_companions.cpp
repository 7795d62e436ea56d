#include "intercept/ranks/region_companions.hpp"

#include <algorithm>
#include <utility>

#include "core/value/stable_hash.hpp"
#include "intercept/nccl/collective_calls.hpp"
#include "intercept/ranks/question_kind.hpp"

namespace contextune::intercept {
namespace {

// The collectives that a region had may all be of communicators that have ended.
constexpr std::uint64_t most_entries_without = 8;
// Where the program makes the entries: a rank may be late by some of its own, however long.
constexpr std::uint64_t least_entries = 16;
constexpr std::uint64_t most_entries_between = 16;
// A rank's answer comes from control threads alone, and nobody waits for it in live mode.
constexpr double answer_seconds = 3600;
// Longer than control threads take.
constexpr double leaving_seconds = 0.25;

/// The group of the question that one rank asks about the region: the others ask questions of their
/// own.
std::uint64_t group_of(std::uint64_t region, std::uint32_t rank) {
  StableHash hash;
  hash.add("domain");
  hash.add(region);
  hash.add(rank);
  return hash.value();
}

}  // namespace

RegionCompanions::RegionCompanions(ProcessRanks& ranks, SharedTuningSettings settings,
                                   const Options& options)
    : ranks_(ranks),
      settings_(std::move(settings)),
      distributed_(options.distributed),
      scope_(options.scope) {}

Companions RegionCompanions::all_of_job(std::span<const DecisionStanding> used, bool bounded) {
  const bool only_devices = bounded || !collective_calls().has_peers();
  Companions found = ranks_.companions(settings_, distributed_,
                                       only_devices ? used : std::span<const DecisionStanding>());
  found.scope = scope_;
  if (found.state == Companions::State::Known && !members_.empty())
    narrow(found.settings, members_);
  return found;
}

bool RegionCompanions::are_sought(const Companions& found, bool bounded) const {
  return bounded && members_.empty() && found.state == Companions::State::Known &&
         found.coordinator->num_ranks() > 1 && ranks_.has_parts();
}

Companions RegionCompanions::find(std::span<const DecisionStanding> used, std::uint64_t entries,
                                  bool bounded, double now) {
  Companions found = all_of_job(used, bounded);
  if (!are_sought(found, bounded)) return found;
  Companions sought;
  sought.state = Companions::State::Sought;
  if (asked_first_ == 0) asked_first_ = now;
  if (!asked_) {
    if (used.empty() && !are_certain()) {
      return entries < most_entries_without ? sought : found;
    }
    if (entries < ask_again_) return sought;
    coordinator_ = found.coordinator;
    DomainReport report = report_of(used);
    report.waits_no_longer =
        entries >= least_entries && now - asked_first_ > settings_.presync_timeout;
    ask(report);
  }
  const Agreement agreement = coordinator_->poll(topic_);
  if (agreement.verdict == Verdict::Open) return sought;
  asked_ = false;
  ++topic_.question;
  // The tuning that asks all ranks says what is wrong with them.
  if (agreement.verdict != Verdict::Committed) return found;
  auto ranks = decode_domain(agreement.decision);
  if (!ranks) return found;
  if (ranks->empty()) {
    ask_again_ = entries + pause_;
    pause_ = std::min(2 * pause_, most_entries_between);
    return sought;
  }
  narrow(found.settings, *std::move(ranks));
  return found;
}

Companions RegionCompanions::leave(std::span<const DecisionStanding> used, bool bounded) {
  Companions found = all_of_job(used, bounded);
  if (!are_sought(found, bounded)) return found;
  if (std::exchange(asked_, false)) {
    coordinator_->withdraw(topic_, "it has left the region");
    ++topic_.question;
  }
  coordinator_ = found.coordinator;
  DomainReport report = report_of(used);
  report.leaves = true;
  ask(report);
  const Agreement agreement = coordinator_->wait(topic_, leaving_seconds);
  auto ranks =
      agreement.verdict == Verdict::Committed ? decode_domain(agreement.decision) : std::nullopt;
  if (!ranks || ranks->empty()) return {};
  narrow(found.settings, *std::move(ranks));
  return found;
}

DomainReport RegionCompanions::report_of(std::span<const DecisionStanding> used) const {
  DomainReport report;
  report.region = settings_.group;
  report.num_ranks = coordinator_->num_ranks();
  for (const DecisionStanding& one : used) {
    const bool known = std::any_of(report.used.begin(), report.used.end(),
                                   [&](const auto& other) { return other.id == one.communicator; });
    // Those that reach beyond the job are tuned by nobody.
    const bool reaches_beyond = one.ranks > std::uint64_t{report.num_ranks} * one.here;
    if (!known && !reaches_beyond) report.used.push_back({one.communicator, one.ranks, one.here});
  }
  return report;
}

void RegionCompanions::ask(const DomainReport& report) {
  topic_.group = group_of(settings_.group, coordinator_->rank());
  topic_.ranks = {coordinator_->rank()};
  coordinator_->say(topic_, question_kind::domain, encode(report), answer_seconds);
  asked_ = true;
}

}  // namespace contextune::intercept
