#include "several_ranks.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <span>
#include <stdexcept>
#include <thread>

#include "core/coordination/coordinator.hpp"
#include "core/coordination/lockstep.hpp"
#include "rank/meeting/gathered_rendezvous.hpp"

using contextune::Payload;
using contextune::Topic;
using contextune::rank::SocketCoordinator;
using contextune::rank::SocketSettings;

contextune::rank::Deciders test_deciders() {
  return {{join_parts,
           [](const Topic&, std::span<const Payload> said, std::string&) {
             Payload all;
             for (const Payload& part : said) all.insert(all.end(), part.begin(), part.end());
             return all;
           }},
          {refuse_all,
           [](const Topic&, std::span<const Payload>, std::string& why) {
             why = "not today";
             return Payload{};
           }},
          {tell_all, &contextune::Lockstep::decide},
          {throw_error, [](const Topic&, std::span<const Payload>, std::string&) -> Payload {
             throw std::runtime_error("broken");
           }}};
}

Payload bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return {bytes.begin(), bytes.end()};
}

SocketSettings test_settings(std::uint32_t num_ranks) {
  static std::atomic<int> count{0};
  SocketSettings settings;
  settings.num_ranks = num_ranks;
  settings.job = "test-" + std::to_string(getpid()) + "-" + std::to_string(count++);
  settings.address = "unix:contextune-" + settings.job;
  settings.secret = "a secret of the tests";
  settings.join_seconds = long_enough;
  settings.heartbeat_seconds = 0.1;
  settings.silence_seconds = long_enough;
  settings.vote_seconds = long_enough;
  settings.recovery_seconds = 1;
  return settings;
}

SocketSettings of_rank(SocketSettings settings, std::uint32_t rank) {
  settings.rank = rank;
  return settings;
}

Ranks make_gathered_ranks() {
  using contextune::rank::GatheredRendezvous;
  constexpr std::uint32_t count = 3;
  std::vector<GatheredRendezvous> meeting;
  std::vector<std::byte> all;
  for (std::uint32_t rank = 0; rank < count; ++rank) {
    const std::string address = "127.0.0." + std::to_string(rank + 2);
    meeting.emplace_back(rank, count, contextune::rank::Standing{},
                         contextune::rank::HostIdentity{rank, {address}});
    all.insert(all.end(), meeting.back().block().begin(), meeting.back().block().end());
  }
  Ranks ranks;
  for (GatheredRendezvous& each : meeting) {
    const contextune::rank::Rendezvous found = each.read(all);
    SocketSettings settings = of_rank(test_settings(count), found.rank);
    settings.job = found.job;
    settings.address = found.address;
    settings.secret = found.secret;
    settings.listener = found.listener;
    ranks.push_back(std::make_unique<SocketCoordinator>(settings, test_deciders()));
  }
  return ranks;
}

Ranks make_ranks(const SocketSettings& settings) {
  Ranks ranks;
  for (std::uint32_t rank = 0; rank < settings.num_ranks; ++rank)
    ranks.push_back(std::make_unique<SocketCoordinator>(of_rank(settings, rank), test_deciders()));
  return ranks;
}

Ranks make_relayed_ranks(std::uint32_t num_ranks) {
  SocketSettings settings = test_settings(num_ranks);
  settings.fewest_relayed_ranks = fewest_relayed;
  Ranks ranks = make_ranks(settings);
  const contextune::rank::RelaySpans spans(num_ranks, fewest_relayed);
  for (const auto& rank : ranks)
    if (spans.relay_of(rank->rank()) != 0 && !spans.is_relay(rank->rank()))
      wait_for_relay(*rank, true);
  return ranks;
}

void wait_for_relay(const contextune::Coordinator& rank, bool has_one) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(long_enough);
  while (dynamic_cast<const SocketCoordinator&>(rank).has_relay() != has_one) {
    if (std::chrono::steady_clock::now() > until) throw std::runtime_error("a rank has no relay");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}
