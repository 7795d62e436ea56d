// How agreeing grows with the number of ranks: the real hub, members and frames on a simulated
// network, without a GPU and without sockets.
#include <malloc.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/agreement/domain_planner.hpp"
#include "loopback_cost.hpp"
#include "rank/star/socket_coordinator.hpp"
#include "settings.hpp"
#include "simulated_star.hpp"

namespace {

using bench::NetworkModel;
using bench::SimulatedStar;
using bench::Traffic;
using contextune::Agreement;
using contextune::DomainPlanner;
using contextune::DomainReport;
using contextune::Payload;
using contextune::RankSet;
using contextune::Topic;
using contextune::Verdict;
using contextune::rank::Deciders;
using contextune::rank::Hub;
using contextune::rank::Member;
using contextune::rank::Message;
using contextune::rank::MessageType;
using contextune::rank::Outbox;
using contextune::rank::SocketSettings;

constexpr const char* usage =
    "Lets many ranks agree over a simulated network, and tells how that grows with their number.\n"
    "The protocol, its messages and their frames are the real ones. The network and its times are\n"
    "simulated, and every such figure says so. CPU time and memory of rank 0's code are measured.\n"
    "  --ranks LIST            numbers of ranks (8,64,512,1024,4096,16384)\n"
    "  --rounds N              agreements for each number of ranks (20)\n"
    "  --seed N                of the times at which ranks come, and of the jitter (1)\n"
    "  --ranks-per-host N      ranks of a host (8)\n"
    "  --latency-us T          one way between two processes of a host (5)\n"
    "  --network-latency-us T  one way between two hosts (20)\n"
    "  --jitter-us T           added to either: the mean of an exponential distribution (5)\n"
    "  --per-message-us T      of a control thread, to send or to receive a message (4)\n"
    "  --per-kib-us T          of a control thread, for each KiB of it besides (2)\n"
    "  --gbit T                of the link of rank 0's host, each way (100)\n"
    "  --spread-us T           within which all ranks speak (200)\n"
    "  --part-bytes N          that each rank says (256)\n"
    "  --decision-bytes N      of the decision (1024)\n"
    "  --deadline-s T          that each rank states (5)\n"
    "  --late-s T              after which a straggler comes within that time (1)\n"
    "  --fewest-relayed N      ranks of a job that has relays (33)\n"
    "  --help\n";

struct Settings {
  std::string ranks = "8,64,512,1024,4096,16384";
  int rounds = 20;
  int seed = 1;
  int ranks_per_host = 8;
  double latency_us = 5;
  double network_latency_us = 20;
  double jitter_us = 5;
  double per_message_us = 4;
  double per_kib_us = 2;
  double gbit = 100;
  double spread_us = 200;
  int part_bytes = 256;
  int decision_bytes = 1024;
  double deadline_s = 5;
  double late_s = 1;
  int fewest_relayed = static_cast<int>(contextune::rank::RelaySpans::fewest_ranks);

  [[nodiscard]] NetworkModel model() const {
    NetworkModel model;
    model.ranks_per_host = static_cast<std::uint32_t>(ranks_per_host);
    model.host_seconds = latency_us * 1e-6;
    model.network_seconds = network_latency_us * 1e-6;
    model.jitter_seconds = jitter_us * 1e-6;
    model.message_seconds = per_message_us * 1e-6;
    model.kib_seconds = per_kib_us * 1e-6;
    model.bytes_per_second = gbit * 1e9 / 8;
    model.fewest_relayed_ranks = static_cast<std::uint32_t>(fewest_relayed);
    return model;
  }
};

std::vector<std::uint32_t> numbers_of_ranks(const std::string& list) {
  std::vector<std::uint32_t> numbers;
  for (const char* at = list.data(); at < list.data() + list.size();) {
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(at, list.data() + list.size(), number);
    if (error != std::errc() || number < 4 || number > 100000 || (*end != ',' && *end != '\0'))
      throw std::runtime_error("'" + list + "' is no list of numbers from 4 to 100000");
    numbers.push_back(number);
    at = end + 1;
  }
  return numbers;
}

Topic topic_of(std::uint32_t num_ranks, std::uint64_t question) {
  return {1, question, RankSet::all_of(num_ranks)};
}

Deciders deciders_of(const Settings& settings) {
  const auto bytes = static_cast<std::size_t>(settings.decision_bytes);
  return {{1, [bytes](const Topic&, std::span<const Payload>, std::string&) {
             return Payload(bytes, std::byte{1});
           }}};
}

/// The times at which ranks of one star were told, beside those at which they were to be.
class Releases {
 public:
  Releases(SimulatedStar& star, std::uint32_t num_ranks) : told_at_(num_ranks, -1) {
    star.on_verdict([this](std::uint32_t rank, const Topic&, double now, const Agreement& one) {
      told_at_[rank] = now;
      (one.verdict == Verdict::Committed ? num_committed_ : num_aborted_) += 1;
    });
  }

  /// Of all that were told since this was asked last.
  [[nodiscard]] std::vector<double> take() {
    std::vector<double> times;
    for (double& at : told_at_) {
      if (at >= 0) times.push_back(at);
      at = -1;
    }
    return times;
  }
  [[nodiscard]] std::size_t num_committed() const { return num_committed_; }
  [[nodiscard]] std::size_t num_aborted() const { return num_aborted_; }

 private:
  std::vector<double> told_at_;
  std::size_t num_committed_ = 0;
  std::size_t num_aborted_ = 0;
};

double last_of(const std::vector<double>& times) {
  return times.empty() ? std::nan("") : *std::max_element(times.begin(), times.end());
}

/// All ranks of one number of them.
class Scenarios {
 public:
  Scenarios(const Settings& settings, std::uint32_t num_ranks)
      : settings_(settings), num_ranks_(num_ranks) {}

  void agree();
  void hold_memory();
  void lose_ranks();
  void find_members();
  void introduce_and_recover() const;

 private:
  [[nodiscard]] Payload part() const {
    return Payload(static_cast<std::size_t>(settings_.part_bytes), std::byte{1});
  }
  [[nodiscard]] double spread() const { return settings_.spread_us * 1e-6; }
  /// Has all ranks but those from `first_missing` to `end_missing` speak from that time on.
  /// @return when the last of them does
  double all_say(SimulatedStar& star, double from, const Topic& topic,
                 std::uint32_t first_missing = 0, std::uint32_t end_missing = 0);
  void report_fault(const char* what, double seconds, const Releases& releases,
                    const Traffic& traffic, const char* against) const;

  const Settings& settings_;
  std::uint32_t num_ranks_;
  std::mt19937_64 random_{static_cast<std::uint64_t>(settings_.seed)};
};

double Scenarios::all_say(SimulatedStar& star, double from, const Topic& topic,
                          std::uint32_t first_missing, std::uint32_t end_missing) {
  double last = from;
  for (std::uint32_t rank = 0; rank < num_ranks_; ++rank) {
    const double at = from + spread() * static_cast<double>(random_() >> 11U) * 0x1p-53;
    if (rank >= first_missing && rank < end_missing) continue;
    star.say(at, rank, topic, part(), settings_.deadline_s);
    last = std::max(last, at);
  }
  return last;
}

void Scenarios::agree() {
  SimulatedStar star(num_ranks_, settings_.model(), deciders_of(settings_),
                     static_cast<std::uint64_t>(settings_.seed));
  Releases releases(star, num_ranks_);
  std::vector<double> ms;
  std::vector<double> slowest_ms;
  for (int round = 0; round < settings_.rounds; ++round) {
    const Topic topic = topic_of(num_ranks_, static_cast<std::uint64_t>(round));
    const double last_said = all_say(star, star.now() + 0.001, topic);
    star.run();
    const std::vector<double> told_at = releases.take();
    for (const double at : told_at) ms.push_back((at - last_said) * 1e3);
    slowest_ms.push_back((last_of(told_at) - last_said) * 1e3);
  }
  if (releases.num_committed() != ms.size()) throw std::runtime_error("not all was committed");
  std::sort(ms.begin(), ms.end());
  std::sort(slowest_ms.begin(), slowest_ms.end());
  const auto at = [](const std::vector<double>& sorted, double part) {
    return sorted[static_cast<std::size_t>(part * static_cast<double>(sorted.size() - 1))];
  };
  const Traffic& traffic = star.traffic();
  const double each = 1.0 / settings_.rounds;
  std::printf(
      "%6u ranks, simulated: %7.0f messages at rank 0, %10.1f KiB, and %7.0f between ranks and "
      "relays; verdict after %8.2f ms (99 %%: %8.2f; last rank: %8.2f)\n",
      num_ranks_, static_cast<double>(traffic.messages) * each,
      static_cast<double>(traffic.bytes) * each / 1024,
      static_cast<double>(traffic.passed_on) * each, at(ms, 0.5), at(ms, 0.99),
      at(slowest_ms, 0.5));
  const double messages = std::max(1.0, static_cast<double>(traffic.messages));
  std::printf(
      "%6u ranks, measured:  rank 0's CPU %8.2f ms in the hub, %8.2f ms for frames: %.2f and %.2f "
      "us a message\n",
      num_ranks_, traffic.hub_cpu_seconds * 1e3 * each, traffic.wire_cpu_seconds * 1e3 * each,
      traffic.hub_cpu_seconds * 1e6 / messages, traffic.wire_cpu_seconds * 1e6 / messages);
}

std::size_t allocated_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

void Scenarios::hold_memory() {
  Hub hub(deciders_of(settings_), settings_.deadline_s, num_ranks_);
  const Topic topic = topic_of(num_ranks_, 1);
  Message message;
  message.topic = topic;
  const auto receive = [&](MessageType type, std::size_t payload, std::uint32_t begin,
                           std::uint32_t end) {
    Outbox out;
    for (std::uint32_t rank = begin; rank < end; ++rank) {
      message.type = type;
      message.kind = 1;
      message.seconds = settings_.deadline_s;
      message.payload = Payload(payload, std::byte{1});
      static_cast<void>(hub.receive(rank, message, 0, out));
    }
    message.payload = {};
    return out;
  };
  const std::size_t before = allocated_bytes();
  const auto held = [&] { return allocated_bytes() - before; };
  Outbox out =
      receive(MessageType::Say, static_cast<std::size_t>(settings_.part_bytes), 1, num_ranks_);
  const std::size_t collected = held();
  out = receive(MessageType::Say, static_cast<std::size_t>(settings_.part_bytes), 0, 1);
  const std::size_t proposed = held();
  out = Outbox();
  out = receive(MessageType::Vote, 0, 0, num_ranks_);
  out = Outbox();
  out = receive(MessageType::Acknowledge, 0, 0, num_ranks_);
  out = Outbox();
  const std::size_t kept = held();
  if (hub.num_topics() != 0) throw std::runtime_error("the hub remembers what all know");
  const auto kib = [](std::size_t bytes) { return static_cast<double>(bytes) / 1024; };
  std::printf(
      "%6u ranks, measured:  memory of rank 0's hub %8.1f KiB while all but one have spoken, %8.1f "
      "while the decision is sent, %8.1f kept (%.0f, %.0f and %.0f bytes a rank)\n",
      num_ranks_, kib(collected), kib(proposed), kib(kept),
      static_cast<double>(collected) / num_ranks_, static_cast<double>(proposed) / num_ranks_,
      static_cast<double>(kept) / num_ranks_);
}

void Scenarios::report_fault(const char* what, double seconds, const Releases& releases,
                             const Traffic& traffic, const char* against) const {
  std::printf("%6u ranks, simulated: %-42s %10.2f ms %-32s %7zu agree, %7zu not; %8llu messages\n",
              num_ranks_, what, seconds * 1e3, against, releases.num_committed(),
              releases.num_aborted(), static_cast<unsigned long long>(traffic.messages));
}

void Scenarios::lose_ranks() {
  const Topic topic = topic_of(num_ranks_, 1);
  const std::uint32_t last = num_ranks_ - 1;
  const auto make = [&] {
    return SimulatedStar(num_ranks_, settings_.model(), deciders_of(settings_),
                         static_cast<std::uint64_t>(settings_.seed));
  };
  const std::string stated =
      "(stated: " + std::to_string(settings_.deadline_s).substr(0, 5) + " s)";
  {
    SimulatedStar star = make();
    Releases releases(star, num_ranks_);
    all_say(star, 0, topic, last, num_ranks_);
    const double dies_at = 0.1;
    star.kill(dies_at, last);
    star.run();
    report_fault("a rank dies; all others are free after", last_of(releases.take()) - dies_at,
                 releases, star.traffic(), "(of its end)");
  }
  {
    SimulatedStar star = make();
    Releases releases(star, num_ranks_);
    star.stand_still(0, last);
    all_say(star, 0, topic, last, num_ranks_);
    star.run();
    report_fault("a rank is silent; all others are free after", last_of(releases.take()), releases,
                 star.traffic(), stated.c_str());
  }
  {
    SimulatedStar star = make();
    Releases releases(star, num_ranks_);
    all_say(star, 0, topic, last, num_ranks_);
    star.say(settings_.late_s, last, topic, part(), settings_.deadline_s);
    star.run();
    report_fault("a rank is late; all agree after", last_of(releases.take()) - settings_.late_s,
                 releases, star.traffic(), "(of its coming)");
  }
  // Late ranks that say when they are asked that they are at something: one, and every second.
  for (const std::uint32_t first : {last, num_ranks_ / 2}) {
    SimulatedStar star = make();
    Releases releases(star, num_ranks_);
    all_say(star, 0, topic, first, num_ranks_);
    const double comes_at = 2 * settings_.deadline_s;
    for (std::uint32_t rank = first; rank < num_ranks_; ++rank) {
      star.occupied(rank, topic, 4 * settings_.deadline_s);
      star.say(comes_at, rank, topic, part(), settings_.deadline_s);
    }
    star.run();
    report_fault(first == last ? "a rank is occupied; all agree after"
                               : "half are occupied; all agree after",
                 last_of(releases.take()) - comes_at, releases, star.traffic(),
                 "(of their coming)");
  }
}

// At their first region all ranks ask which others a communicator has, each under a topic of its
// own, and ask again until all have come.
void Scenarios::find_members() {
  DomainPlanner planner;
  SimulatedStar star(num_ranks_, settings_.model(),
                     {{1, [&](const Topic& topic, std::span<const Payload> said,
                              std::string& why) { return planner.decide(topic, said, why); }}},
                     static_cast<std::uint64_t>(settings_.seed));
  DomainReport report;
  report.region = 1;
  report.used.push_back({1, num_ranks_, 1});
  report.num_ranks = num_ranks_;
  const Payload asks = encode(report);
  std::size_t num_found = 0;
  std::size_t num_refused = 0;
  double last_found = 0;
  star.on_verdict([&](std::uint32_t rank, const Topic& topic, double now, const Agreement& one) {
    if (one.verdict != Verdict::Committed) {
      ++num_refused;
    } else if (contextune::decode_domain(one.decision).value().size() == num_ranks_) {
      ++num_found;
      last_found = now;
    } else {
      star.say(now + 0.01, rank, {rank, topic.question + 1, {rank}}, asks, settings_.deadline_s);
    }
  });
  for (std::uint32_t rank = 0; rank < num_ranks_; ++rank)
    star.say(spread() * static_cast<double>(random_() >> 11U) * 0x1p-53, rank, {rank, 1, {rank}},
             asks, settings_.deadline_s);
  star.run();
  const Traffic& traffic = star.traffic();
  std::printf(
      "%6u ranks, simulated: each asks whom its communicator has; all know after %.2f ms (%zu do, "
      "%zu were refused); %llu messages, %.1f KiB\n"
      "%6u ranks, measured:  rank 0's CPU for that: %.2f ms in the hub and DomainPlanner, %.2f ms "
      "for "
      "frames\n",
      num_ranks_, last_found * 1e3, num_found, num_refused,
      static_cast<unsigned long long>(traffic.messages), static_cast<double>(traffic.bytes) / 1024,
      num_ranks_, traffic.hub_cpu_seconds * 1e3, traffic.wire_cpu_seconds * 1e3);
}

// The messages of a rank's first agreement with all others, and of the loss of rank 0 after its
// vote.
void Scenarios::introduce_and_recover() const {
  Message peers;
  peers.type = MessageType::Peers;
  peers.topic = topic_of(num_ranks_, 1);
  peers.addresses.assign(num_ranks_, "tcp:10.123.123.123:23456");
  const double introduction =
      static_cast<double>(encode(peers).size() + contextune::rank::frame_header_bytes +
                          contextune::rank::frame_tag_bytes);
  const double others = num_ranks_ - 1;
  const contextune::rank::RelaySpans spans(num_ranks_, settings_.model().fewest_relayed_ranks);
  double told_by_hub = 0;  // ranks of its own span, and relays
  for (std::uint32_t rank = 1; rank < num_ranks_; ++rank)
    if (spans.relay_of(rank) == 0 || spans.is_relay(rank)) ++told_by_hub;
  Member member(num_ranks_ / 2, num_ranks_, 600);
  Outbox out;
  member.say(peers.topic, 1, part(), settings_.deadline_s, out);
  Message proposal;
  proposal.type = MessageType::Propose;
  proposal.topic = peers.topic;
  proposal.payload = part();
  static_cast<void>(member.receive(std::move(proposal), out));
  out.clear();
  member.lose_hub("lost", 0, out);
  std::printf(
      "%6u ranks, computed:  before its first vote with all others each rank is told where they "
      "listen: %.1f MiB in all, once, of which rank 0 sends %.1f, in %.2f ms of its control "
      "thread\n"
      "%6u ranks, computed:  where rank 0 is lost after the votes each rank calls %zu others at "
      "first, %.0f in all, and up to %.0f in all if nobody knows the verdict\n",
      num_ranks_, introduction * others / (1 << 20U), introduction * told_by_hub / (1 << 20U),
      told_by_hub * 1e-3 * (settings_.per_message_us + settings_.per_kib_us * introduction / 1024),
      num_ranks_, out.size(), static_cast<double>(out.size()) * others, others * others);
  std::printf(
      "%6u ranks, computed:  signs of life take %.1f %% of rank 0's control thread\n", num_ranks_,
      100 * 2 * others * settings_.per_message_us * 1e-6 / SocketSettings{}.heartbeat_seconds);
}

void report_loopback() {
  for (const auto kind : {bench::Loopback::Unix, bench::Loopback::Tcp}) {
    const bench::LoopbackCost small = bench::measure_loopback(kind, 64);
    const bench::LoopbackCost large = bench::measure_loopback(kind, 64 << 10U);
    std::printf(
        "measured on this host over %s: %.2f us of CPU to send a message, %.2f to receive one, "
        "and %.2f and %.2f more for each KiB\n",
        kind == bench::Loopback::Unix ? "a Unix socket" : "TCP's loopback", small.send_us,
        small.receive_us, (large.send_us - small.send_us) / 64,
        (large.receive_us - small.receive_us) / 64);
  }
}

void run(const Settings& settings) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // the largest numbers take a while
  report_loopback();
  std::printf(
      "assumed: %d ranks a host, %g us one way in a host, %g us between hosts, %g us of jitter on "
      "average, %g us of a control thread to send or receive a message and %g us for each KiB, %g "
      "Gbit/s at rank 0's host; all ranks speak within %g us, %d bytes each, and the decision has "
      "%d\n\n",
      settings.ranks_per_host, settings.latency_us, settings.network_latency_us, settings.jitter_us,
      settings.per_message_us, settings.per_kib_us, settings.gbit, settings.spread_us,
      settings.part_bytes, settings.decision_bytes);
  for (const std::uint32_t num_ranks : numbers_of_ranks(settings.ranks)) {
    Scenarios scenarios(settings, num_ranks);
    scenarios.agree();
    scenarios.hold_memory();
    scenarios.lose_ranks();
    scenarios.find_members();
    scenarios.introduce_and_recover();
    std::printf("\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  try {
    bench::read_settings(argc, argv, usage,
                         {{"--ranks", &settings.ranks},
                          {"--rounds", &settings.rounds},
                          {"--seed", &settings.seed},
                          {"--ranks-per-host", &settings.ranks_per_host},
                          {"--latency-us", &settings.latency_us},
                          {"--network-latency-us", &settings.network_latency_us},
                          {"--jitter-us", &settings.jitter_us},
                          {"--per-message-us", &settings.per_message_us},
                          {"--per-kib-us", &settings.per_kib_us},
                          {"--gbit", &settings.gbit},
                          {"--spread-us", &settings.spread_us},
                          {"--part-bytes", &settings.part_bytes},
                          {"--decision-bytes", &settings.decision_bytes},
                          {"--deadline-s", &settings.deadline_s},
                          {"--late-s", &settings.late_s},
                          {"--fewest-relayed", &settings.fewest_relayed}});
    run(settings);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "many_ranks: %s\n", error.what());
    return 1;
  }
  return 0;
}
