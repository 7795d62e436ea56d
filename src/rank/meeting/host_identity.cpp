#include "rank/meeting/host_identity.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string_view>

#include "core/value/stable_hash.hpp"

namespace contextune::rank {
namespace {

struct Candidate {
  int rating;  // the lower, the likelier
  std::string address;
};

// Bridges to the containers of this host lead nowhere from another, where there may well be one
// of the same address.
bool is_bridge(std::string_view interface) {
  constexpr std::array<std::string_view, 6> prefixes{"docker", "br-", "virbr",
                                                     "veth",   "cni", "lxc"};
  return std::ranges::any_of(
      prefixes, [&](std::string_view prefix) { return interface.starts_with(prefix); });
}

Candidate candidate_of(const ifaddrs& interface) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool bridge = is_bridge(interface.ifa_name);
  if (interface.ifa_addr->sa_family == AF_INET) {
    sockaddr_in internet{};
    std::memcpy(&internet, interface.ifa_addr, sizeof(internet));
    inet_ntop(AF_INET, &internet.sin_addr, text.data(), text.size());
    const std::uint32_t number = ntohl(internet.sin_addr.s_addr);
    if (number >> 24 == 127) return {4, text.data()};
    if (number >> 16 == 0xa9fe) return {-1, {}};  // good on its own link only
    return {bridge ? 2 : 0, text.data()};
  }
  sockaddr_in6 internet{};
  std::memcpy(&internet, interface.ifa_addr, sizeof(internet));
  if (IN6_IS_ADDR_LINKLOCAL(&internet.sin6_addr)) return {-1, {}};
  inet_ntop(AF_INET6, &internet.sin6_addr, text.data(), text.size());
  const int rating = IN6_IS_ADDR_LOOPBACK(&internet.sin6_addr) ? 5 : bridge ? 3 : 1;
  return {rating, "[" + std::string(text.data()) + "]"};
}

std::vector<std::string> addresses_here() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(all, &freeifaddrs);
  std::vector<Candidate> candidates;
  for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || (each->ifa_flags & IFF_UP) == 0) continue;
    if (each->ifa_addr->sa_family != AF_INET && each->ifa_addr->sa_family != AF_INET6) continue;
    Candidate candidate = candidate_of(*each);
    if (candidate.rating >= 0) candidates.push_back(std::move(candidate));
  }
  std::ranges::stable_sort(candidates, {}, &Candidate::rating);
  constexpr int loopback = 4;
  std::vector<std::string> addresses;
  for (Candidate& candidate : candidates) {
    if (addresses.size() == most_host_addresses) break;
    if (candidate.rating >= loopback && !addresses.empty()) break;
    addresses.push_back(std::move(candidate.address));
  }
  return addresses;
}

}  // namespace

HostIdentity identify_host() {
  StableHash hash;
  std::ifstream boot("/proc/sys/kernel/random/boot_id");
  hash.add(std::string(std::istreambuf_iterator<char>(boot), {}));
  struct stat network {};
  // Unix sockets without a file belong to the network namespace.
  if (stat("/proc/self/ns/net", &network) != 0) network.st_ino = static_cast<ino_t>(getpid());
  hash.add(static_cast<std::uint64_t>(network.st_ino));
  hash.add(static_cast<std::uint64_t>(geteuid()));
  return {hash.value(), addresses_here()};
}

}  // namespace contextune::rank
