#include "core/coordination/lockstep.hpp"

#include <algorithm>
#include <utility>

#include "core/value/byte_stream.hpp"

namespace contextune {
namespace {

// Added to time that was granted, for rank 0's verdict that a rank has not come. Within the stated
// time rank 0 answers by itself.
constexpr double answer_seconds = 2;
/// For a verdict that may have been reached: longer where whoever knows it stands still.
constexpr double late_verdict_seconds = 15;

std::optional<std::vector<Payload>> decode(const Payload& decision, std::size_t num_ranks) {
  ByteReader from(decision);
  std::vector<Payload> all;
  for (std::size_t i = 0; i < num_ranks; ++i) {
    const auto part = from.block();
    all.emplace_back(part.begin(), part.end());
  }
  if (from.failed() || from.left() != 0) return std::nullopt;
  return all;
}

}  // namespace

Lockstep::Lockstep(Coordinator& coordinator, std::uint32_t kind, std::uint64_t group,
                   std::vector<std::uint32_t> ranks, double seconds)
    : coordinator_(coordinator), kind_(kind), ranks_(std::move(ranks)), seconds_(seconds) {
  topic_.group = group;
  topic_.ranks = ranks_;
  const auto own = std::find(ranks_.begin(), ranks_.end(), coordinator.rank());
  position_ = static_cast<std::size_t>(own - ranks_.begin());
}

Payload Lockstep::decide(const Topic&, std::span<const Payload> said, std::string&) {
  Payload all;
  ByteWriter to(all);
  for (const Payload& one : said) to.block(one);
  return all;
}

std::optional<std::vector<Payload>> Lockstep::meet(Payload said, double most_seconds) {
  if (!why_.empty()) return std::nullopt;
  const double seconds = std::min(seconds_, most_seconds);
  coordinator_.say(topic_, kind_, std::move(said), seconds);
  Agreement agreement;
  double waited = 0;
  for (double left = seconds; left > 0 && agreement.verdict == Verdict::Open;) {
    agreement = coordinator_.wait(topic_, left);
    waited += agreement.waited_seconds;
    left = agreement.granted_seconds > 0 ? agreement.granted_seconds + answer_seconds : 0;
  }
  if (agreement.verdict == Verdict::Open) {
    coordinator_.withdraw(topic_, "rank 0 did not answer");
    agreement = coordinator_.wait(topic_, late_verdict_seconds);
    waited += agreement.waited_seconds;
  }
  waited_seconds_ += waited;
  longest_wait_seconds_ = std::max(longest_wait_seconds_, waited);
  ++topic_.question;
  if (agreement.verdict == Verdict::Committed) {
    if (auto all = decode(agreement.decision, topic_.ranks.size())) return all;
    agreement.why = "the answer of rank 0 cannot be read";
  }
  why_ = agreement.why.empty() ? "rank 0 did not answer" : std::move(agreement.why);
  return std::nullopt;
}

void Lockstep::occupied(double seconds, std::string why) {
  if (why_.empty()) coordinator_.occupied(topic_, seconds, std::move(why));
}

void Lockstep::leave(const std::string& why) {
  if (!why_.empty()) return;
  why_ = why;
  coordinator_.withdraw(topic_, why);
}

}  // namespace contextune
