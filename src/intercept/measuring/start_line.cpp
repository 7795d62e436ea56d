#include "intercept/measuring/start_line.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "core/value/byte_stream.hpp"
#include "rank/meeting/host_identity.hpp"

namespace contextune::intercept {
namespace {

constexpr std::int64_t first_margin_ns = 100'000;
constexpr std::int64_t least_margin_ns = 20'000;
constexpr std::int64_t most_margin_ns = 5'000'000;
constexpr std::int64_t longest_spin_ns = 200'000;

std::int64_t now_ns() noexcept {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

}  // namespace

StartLine::StartLine(Lockstep& lockstep)
    : lockstep_(lockstep), host_(rank::identify_host().local), margin_ns_(first_margin_ns) {}

std::optional<std::vector<std::uint8_t>> StartLine::await(std::uint8_t what) {
  Payload said;
  ByteWriter to(said);
  to.number(what);
  to.number(host_);
  to.number(static_cast<std::uint64_t>(now_ns()));
  to.number(static_cast<std::uint64_t>(late_ns_));
  const auto heard = lockstep_.meet(std::move(said));
  if (!heard) return std::nullopt;
  std::vector<std::uint8_t> all;
  bool on_one_host = true;
  std::int64_t last_ready = 0;
  std::int64_t most_late = 0;
  for (const Payload& one : *heard) {
    ByteReader from(one);
    all.push_back(from.number<std::uint8_t>());
    on_one_host = from.number<std::uint64_t>() == host_ && on_one_host;
    last_ready = std::max(last_ready, static_cast<std::int64_t>(from.number<std::uint64_t>()));
    most_late = std::max(most_late, static_cast<std::int64_t>(from.number<std::uint64_t>()));
    if (!from.failed() && from.left() == 0) continue;
    lockstep_.leave("the report of one of them cannot be read");
    return std::nullopt;
  }
  if (!on_one_host) return all;
  // All ranks reckon alike: a moment at which the last of them has heard, and not much later.
  margin_ns_ = most_late > 0 ? std::min(most_margin_ns, margin_ns_ + 2 * most_late)
                             : std::max(least_margin_ns, margin_ns_ - margin_ns_ / 8);
  const std::int64_t moment = last_ready + margin_ns_;
  late_ns_ = now_ns() - moment;
  if (late_ns_ < -most_margin_ns) return all;  // of a clock that is not this one
  if (-late_ns_ > longest_spin_ns)
    std::this_thread::sleep_for(std::chrono::nanoseconds(-late_ns_ - longest_spin_ns));
  while (now_ns() < moment) {
  }
  return all;
}

}  // namespace contextune::intercept
