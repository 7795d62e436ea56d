#include "rank/meeting/unique_id.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>
#include <cstdint>
#include <cstring>

namespace contextune::rank {
namespace {

constexpr std::size_t random_bytes = sizeof(std::uint64_t);
// In place of a random number where NCCL_COMM_ID gives the address.
constexpr std::uint64_t magic_without_secret = 0x0280028002800280;

template <class Address>
Address read_as(std::span<const std::byte> bytes) {
  Address address{};
  std::memcpy(&address, bytes.data(), sizeof(address));
  return address;
}

std::string text_of(int family, const void* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const char* result = inet_ntop(family, address, text.data(), static_cast<socklen_t>(text.size()));
  return result == nullptr ? std::string() : std::string(result);
}

std::string host_of(std::span<const std::byte> address) {
  const auto family = read_as<sockaddr_in>(address).sin_family;
  if (family == AF_INET) {
    const auto internet = read_as<sockaddr_in>(address);
    if (internet.sin_port == 0 || internet.sin_addr.s_addr == 0) return {};
    return text_of(AF_INET, &internet.sin_addr);
  }
  if (family == AF_INET6) {
    const auto internet = read_as<sockaddr_in6>(address);
    // A link-local address needs the name of an interface of this host.
    if (internet.sin6_port == 0 || IN6_IS_ADDR_UNSPECIFIED(&internet.sin6_addr) ||
        IN6_IS_ADDR_LINKLOCAL(&internet.sin6_addr))
      return {};
    return text_of(AF_INET6, &internet.sin6_addr);
  }
  return {};
}

}  // namespace

UniqueIdParts parts_of_unique_id(std::span<const std::byte> id, std::string& error) {
  UniqueIdParts parts;
  if (id.size() != unique_id_bytes) {
    error = "an ncclUniqueId has " + std::to_string(unique_id_bytes) + " bytes, not " +
            std::to_string(id.size());
    return parts;
  }
  const auto random = read_as<std::uint64_t>(id);
  if (random == 0 || random == magic_without_secret) {
    error = "the ncclUniqueId holds no random number (NCCL_COMM_ID?), so it cannot be the secret";
    return parts;
  }
  for (const std::byte byte : id) parts.secret.push_back(static_cast<char>(byte));
  parts.host = host_of(id.subspan(random_bytes));
  return parts;
}

}  // namespace contextune::rank
