#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "catch.hpp"
#include "mentions.hpp"
#include "rank/meeting/gathered_rendezvous.hpp"
#include "rank/wire/endpoint.hpp"
#include "rank/wire/handshake.hpp"
#include "several_ranks.hpp"

using contextune::Agreement;
using contextune::Verdict;
using contextune::rank::GatheredRendezvous;
using contextune::rank::HostIdentity;
using contextune::rank::Rendezvous;

namespace {

const HostIdentity here{7, {"127.0.0.1"}};
const HostIdentity there{8, {"127.0.0.2"}};

std::vector<GatheredRendezvous> ranks_on(const std::vector<HostIdentity>& hosts,
                                         const std::string& refusal_of_last = {},
                                         const std::vector<std::uint64_t>& jobs = {},
                                         std::uint32_t job_ranks = 2) {
  std::vector<GatheredRendezvous> ranks;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank)
    ranks.emplace_back(static_cast<std::uint32_t>(rank), static_cast<std::uint32_t>(hosts.size()),
                       contextune::rank::Standing{rank + 1 == hosts.size() ? refusal_of_last : "",
                                                  jobs.empty() ? 0 : jobs[rank],
                                                  static_cast<std::uint32_t>(rank), job_ranks},
                       hosts[rank]);
  return ranks;
}

std::vector<std::byte> gathered(const std::vector<GatheredRendezvous>& ranks) {
  std::vector<std::byte> all;
  for (const GatheredRendezvous& rank : ranks)
    all.insert(all.end(), rank.block().begin(), rank.block().end());
  return all;
}

std::vector<Rendezvous> meetings(std::vector<GatheredRendezvous>& ranks) {
  const std::vector<std::byte> all = gathered(ranks);
  std::vector<Rendezvous> found;
  for (GatheredRendezvous& rank : ranks) found.push_back(rank.read(all));
  return found;
}

bool somebody_listens(const std::string& address) {
  contextune::rank::Endpoint endpoint;
  std::string error;
  if (!contextune::rank::find_endpoint(address, endpoint, error)) return false;
  const int fd = socket(endpoint.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool answered =
      connect(fd, reinterpret_cast<const sockaddr*>(&endpoint.address), endpoint.size) == 0;
  close(fd);
  return answered;
}

}  // namespace

TEST_CASE("Ranks that gather meet at the same place, with a secret that nobody else knows",
          "[gathered]") {
  const auto hosts = GENERATE(std::vector{here, here, here}, std::vector{here, there, here});
  std::set<std::string> secrets;
  for (int job = 0; job < 2; ++job) {
    auto ranks = ranks_on(hosts);
    const auto found = meetings(ranks);
    for (std::uint32_t rank = 0; rank < found.size(); ++rank) {
      CHECK(found[rank].error.empty());
      CHECK(found[rank].rank == rank);
      CHECK(found[rank].num_ranks == hosts.size());
      CHECK(found[rank].job == found[0].job);
      CHECK(found[rank].address == found[0].address);
      CHECK(found[rank].secret == found[0].secret);
    }
    CHECK(found[0].secret.size() >= contextune::rank::min_secret_bytes);
    secrets.insert(found[0].secret);
  }
  CHECK(secrets.size() == 2);
}

TEST_CASE("On one host they meet at a Unix socket, and no port stays open", "[gathered]") {
  auto ranks = ranks_on({here, here});
  const auto found = meetings(ranks);
  CHECK(contextune::rank::is_local_address(found[0].address));
  CHECK(found[0].listener == nullptr);
  CHECK(found[1].local_rank == 1);
}

TEST_CASE("Past one host rank 0 listens before anybody knows where", "[gathered]") {
  auto ranks = ranks_on({here, there, there});
  const auto found = meetings(ranks);
  CHECK(found[0].address.starts_with("tcp:127.0.0.1:"));
  REQUIRE(found[0].listener != nullptr);
  CHECK(somebody_listens(found[0].address));
  CHECK(found[1].listener == nullptr);
  CHECK(found[1].local_rank == 0);
  CHECK(found[2].local_rank == 1);
}

TEST_CASE("If one rank does not take part, none does, and all know why", "[gathered]") {
  auto ranks = ranks_on({here, here, there}, "it is switched off there");
  for (const Rendezvous& found : meetings(ranks))
    CHECK(found.error == "rank 2 does not take part: it is switched off there");
}

TEST_CASE("Ranks that agree already need not meet, and other ranks cannot", "[gathered]") {
  const std::string before = "it has joined other ranks before";
  auto same = ranks_on({here, there}, before, {5, 5});
  for (const Rendezvous& found : meetings(same)) {
    CHECK(found.error.empty());
    CHECK(found.address.empty());
  }
  const auto jobs = GENERATE(std::vector<std::uint64_t>{0, 5}, std::vector<std::uint64_t>{6, 5},
                             std::vector<std::uint64_t>{0, 0});
  auto others = ranks_on({here, there}, before, jobs);
  for (const Rendezvous& found : meetings(others))
    CHECK(found.error == "rank 1 does not take part: " + before);
}

TEST_CASE("Some of the ranks that agree already are not the same ranks", "[gathered]") {
  const std::string before = "it has joined other ranks before";
  for (const auto& hosts : {std::vector{here, here}, std::vector{here}}) {
    auto some = ranks_on(hosts, before, {5, 5}, 4);
    for (const Rendezvous& found : meetings(some))
      CHECK(mentions(found.error, "of the 4 ranks that are tuned together already"));
  }
}

TEST_CASE("A reason of any length leaves the block whole", "[gathered]") {
  auto ranks = ranks_on({here, here}, std::string(5000, 'x'));
  CHECK(mentions(meetings(ranks)[0].error, "rank 1 does not take part: xxx"));
}

TEST_CASE("A block of somebody else is named, and nothing in it is believed", "[gathered]") {
  auto ranks = ranks_on({here, there});
  auto all = gathered(ranks);
  const std::size_t second = GatheredRendezvous::block_bytes;
  std::string expected = "not contextune's";
  SECTION("of nobody") {
    std::fill(all.begin() + static_cast<std::ptrdiff_t>(second), all.end(), std::byte{0});
  }
  SECTION("of another version") {
    all[second + 4] = std::byte{99};
    expected = "another version";
  }
  SECTION("of another rank") {
    std::copy_n(all.begin(), second, all.begin() + static_cast<std::ptrdiff_t>(second));
    expected = "it is rank 0 of 2 there";
  }
  SECTION("with a length that leads out of it") {
    all[second + 43] = std::byte{0xff};
    expected = "cut off";
  }
  CHECK(mentions(ranks[0].read(all).error, expected));
  CHECK(mentions(ranks[1].read(all).error, "rank 1 does not take part"));
}

TEST_CASE("Less than all blocks is no meeting", "[gathered]") {
  auto ranks = ranks_on({here, there});
  auto all = gathered(ranks);
  all.pop_back();
  CHECK_FALSE(ranks[0].read(all).error.empty());
}

TEST_CASE("Without an address past one host the reason is said", "[gathered]") {
  auto ranks = ranks_on({{7, {}}, there});
  for (const Rendezvous& found : meetings(ranks)) CHECK(mentions(found.error, "no TCP address"));
}

TEST_CASE("However many addresses a host has, those that fit are told", "[gathered]") {
  HostIdentity many{7, {}};
  for (int i = 0; i < 6; ++i)
    many.addresses.push_back("[2001:db8:1111:2222:3333:4444:5555:" + std::to_string(6000 + i) +
                             "]");
  auto ranks = ranks_on({many, there});
  const auto found = meetings(ranks);
  CHECK(found[1].error.empty());
  CHECK(mentions(found[1].address, many.addresses[4]));
}

TEST_CASE("This host has an identity that stays", "[gathered]") {
  const HostIdentity first = contextune::rank::identify_host();
  CHECK(first.local == contextune::rank::identify_host().local);
  CHECK_FALSE(first.addresses.empty());
}
