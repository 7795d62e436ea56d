#include "rank/wire/endpoint.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "core/value/parse_number.hpp"

namespace contextune::rank {
namespace {

constexpr std::string_view local_prefix = "unix:";
constexpr std::string_view tcp_prefix = "tcp:";

// Above what programs count on when they number descriptors, below the usual limit of 1024; lower
// where the limit is.
constexpr std::array<int, 3> lowest_descriptors{800, 100, 3};

int out_of_the_way(int fd) noexcept {
  if (fd < 0) return fd;
  for (const int lowest : lowest_descriptors) {
    const int high = fcntl(fd, F_DUPFD_CLOEXEC, lowest);
    if (high < 0) continue;
    close(fd);
    return high;
  }
  return fd;
}

int open_socket(int family) noexcept {
  return out_of_the_way(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

bool is_local_path(const std::string& address) noexcept {
  return std::string_view(address).starts_with("unix:/");
}

int fail(int fd, const std::string& what, std::string& error) {
  error = what + ": " + text_of_error(errno);
  if (fd >= 0) close(fd);
  return -1;
}

void set_tcp_options(int fd) noexcept {
  const int yes = 1;
  static_cast<void>(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)));
}

bool find_local(std::string_view name, Endpoint& endpoint, std::string& error) {
  sockaddr_un local{};
  // An abstract name starts after a zero byte, a path ends with one.
  if (name.empty() || name.size() + 1 > sizeof(local.sun_path)) {
    error = "the name of a Unix socket has 1 to " + std::to_string(sizeof(local.sun_path) - 1) +
            " characters";
    return false;
  }
  local.sun_family = AF_UNIX;
  std::memcpy(local.sun_path + (name.front() == '/' ? 0 : 1), name.data(), name.size());
  endpoint.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  std::memcpy(&endpoint.address, &local, sizeof(local));
  return true;
}

struct HostAndPort {
  std::string host;
  std::string port;
  std::uint16_t number = 0;
};

bool split(std::string_view place, HostAndPort& parts, std::string& error) {
  const std::size_t colon = place.rfind(':');
  const std::string_view port = place.substr(std::min(colon, place.size() - 1) + 1);
  if (colon == std::string_view::npos || colon == 0 || !read_number(port, parts.number) ||
      parts.number == 0) {
    error = "\"" + std::string(place) + "\" is no HOST:PORT";
    return false;
  }
  parts.host = place.substr(0, colon);
  parts.port = port;
  return true;
}

// Chooses a host of "A,B,[C]", without brackets; `attempt` then counts for its own addresses.
std::string choose_host(std::string_view hosts, std::size_t& attempt) {
  const auto count = static_cast<std::size_t>(std::count(hosts.begin(), hosts.end(), ',')) + 1;
  for (std::size_t i = attempt % count; i > 0; --i) hosts.remove_prefix(hosts.find(',') + 1);
  attempt /= count;
  hosts = hosts.substr(0, hosts.find(','));
  if (hosts.size() > 2 && hosts.front() == '[' && hosts.back() == ']')
    hosts = hosts.substr(1, hosts.size() - 2);
  return std::string(hosts);
}

bool find_tcp(std::string_view place, Endpoint& endpoint, std::string& error, std::size_t attempt) {
  HostAndPort parts;
  if (!split(place, parts, error)) return false;
  parts.host = choose_host(parts.host, attempt);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* all = nullptr;
  if (const int code = getaddrinfo(parts.host.c_str(), parts.port.c_str(), &hints, &all);
      code != 0) {
    error = "\"" + std::string(place) + "\" was not found: " + gai_strerror(code);
    return false;
  }
  std::size_t count = 0;
  for (const addrinfo* each = all; each != nullptr; each = each->ai_next) ++count;
  const addrinfo* found = all;
  for (std::size_t i = attempt % count; i > 0; --i) found = found->ai_next;
  std::memcpy(&endpoint.address, found->ai_addr, found->ai_addrlen);
  endpoint.size = found->ai_addrlen;
  freeaddrinfo(all);
  return true;
}

// Whether it says itself which interface is meant.
bool names_interface(const std::string& host) noexcept {
  in6_addr ignored{};
  return host == "localhost" || inet_pton(AF_INET, host.c_str(), &ignored) == 1 ||
         inet_pton(AF_INET6, host.substr(0, host.find('%')).c_str(), &ignored) == 1;
}

void allow_quick_restart(int fd) noexcept {
  const int yes = 1;
  static_cast<void>(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)));
}

// On every interface, at any port if it is 0: those who call must know the secret.
int bind_everywhere(std::uint16_t port, std::string& error) {
  int fd = open_socket(AF_INET6);
  if (fd >= 0) {
    const int no = 0;
    static_cast<void>(setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no)));
    if (port != 0) allow_quick_restart(fd);
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    any.sin6_port = htons(port);
    if (bind(fd, reinterpret_cast<const sockaddr*>(&any), sizeof(any)) == 0) return fd;
    close(fd);
  }
  fd = open_socket(AF_INET);
  if (fd >= 0 && port != 0) allow_quick_restart(fd);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(port);
  if (fd < 0 || bind(fd, reinterpret_cast<const sockaddr*>(&any), sizeof(any)) != 0)
    return fail(fd, "no TCP port can be listened on", error);
  return fd;
}

// A name that the system draws.
int bind_unnamed(std::string& error) {
  const int fd = open_socket(AF_UNIX);
  sockaddr_un any{};
  any.sun_family = AF_UNIX;
  if (fd < 0 || bind(fd, reinterpret_cast<const sockaddr*>(&any), sizeof(sa_family_t)) != 0)
    return fail(fd, "no Unix socket can be listened on", error);
  return fd;
}

bool refuses_callers(const Endpoint& endpoint) noexcept {
  const int fd = open_socket(AF_UNIX);
  if (fd < 0) return false;
  const bool refused =
      connect(fd, reinterpret_cast<const sockaddr*>(&endpoint.address), endpoint.size) != 0 &&
      errno == ECONNREFUSED;
  close(fd);
  return refused;
}

int bind_at(const std::string& address, std::string& error) {
  const std::string what = "it cannot listen at " + address;
  if (address.starts_with(tcp_prefix)) {
    HostAndPort parts;
    if (!split(std::string_view(address).substr(tcp_prefix.size()), parts, error)) return -1;
    std::size_t first = 0;
    if (!names_interface(choose_host(parts.host, first)))
      return bind_everywhere(parts.number, error);
  }
  Endpoint endpoint;
  if (!find_endpoint(address, endpoint, error)) return -1;
  const int fd = open_socket(endpoint.address.ss_family);
  if (fd < 0) return fail(fd, what, error);
  if (!endpoint.is_local()) allow_quick_restart(fd);
  const auto* place = reinterpret_cast<const sockaddr*>(&endpoint.address);
  if (bind(fd, place, endpoint.size) == 0) return fd;
  if (errno != EADDRINUSE || !is_local_path(address) || !refuses_callers(endpoint))
    return fail(fd, what, error);
  remove_listener(address);
  return bind(fd, place, endpoint.size) == 0 ? fd : fail(fd, what, error);
}

std::string host_of(const sockaddr_storage& address, socklen_t size) {
  char host[NI_MAXHOST] = "";
  if (getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, host, sizeof(host), nullptr, 0,
                  NI_NUMERICHOST) != 0)
    return {};
  std::string text = host;
  if (text.find(':') != std::string::npos) text = "[" + text + "]";
  return text;
}

}  // namespace

std::string text_of_error(int error) {
  const char* text = strerrordesc_np(error);
  return text == nullptr ? "error " + std::to_string(error) : std::string(text);
}

bool is_local_address(const std::string& address) noexcept {
  return address.starts_with(local_prefix);
}

bool find_endpoint(const std::string& address, Endpoint& endpoint, std::string& error,
                   std::size_t attempt) {
  const std::string_view text = address;
  if (text.starts_with(local_prefix))
    return find_local(text.substr(local_prefix.size()), endpoint, error);
  if (text.starts_with(tcp_prefix))
    return find_tcp(text.substr(tcp_prefix.size()), endpoint, error, attempt);
  error = "\"" + address + "\" is neither unix:NAME nor tcp:HOST:PORT";
  return false;
}

int listen_at(const std::string& address, std::string& error) {
  const int fd = address == local_prefix ? bind_unnamed(error)
                 : address == tcp_prefix ? bind_everywhere(0, error)
                                         : bind_at(address, error);
  if (fd >= 0 && listen(fd, SOMAXCONN) != 0) return fail(fd, "it cannot listen", error);
  return fd;
}

bool is_left_over(const std::string& address) {
  Endpoint endpoint;
  std::string ignored;
  return is_local_path(address) && find_endpoint(address, endpoint, ignored) &&
         refuses_callers(endpoint);
}

void remove_listener(const std::string& address) noexcept {
  if (!is_local_path(address)) return;
  const char* path = address.c_str() + local_prefix.size();
  struct stat status {};
  if (lstat(path, &status) == 0 && S_ISSOCK(status.st_mode)) static_cast<void>(unlink(path));
}

std::string address_of_listener(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  if (address.ss_family == AF_UNIX) {
    sockaddr_un local{};
    std::memcpy(&local, &address, sizeof(local));
    if (local.sun_path[0] != '\0') return std::string(local_prefix) + local.sun_path;
    const std::size_t start = offsetof(sockaddr_un, sun_path) + 1;
    if (size <= start) return {};
    return std::string(local_prefix) + std::string(local.sun_path + 1, size - start);
  }
  in_port_t port = 0;
  if (address.ss_family == AF_INET6) {
    sockaddr_in6 internet{};
    std::memcpy(&internet, &address, sizeof(internet));
    port = internet.sin6_port;
  } else {
    sockaddr_in internet{};
    std::memcpy(&internet, &address, sizeof(internet));
    port = internet.sin_port;
  }
  return std::string(tcp_prefix) + "*:" + std::to_string(ntohs(port));
}

std::string as_seen_from(int connected, const std::string& address) {
  const std::string prefix = std::string(tcp_prefix) + "*:";
  if (!address.starts_with(prefix)) return address;
  sockaddr_storage peer{};
  socklen_t size = sizeof(peer);
  if (getpeername(connected, reinterpret_cast<sockaddr*>(&peer), &size) != 0) return {};
  const std::string host = host_of(peer, size);
  if (host.empty()) return {};
  return std::string(tcp_prefix) + host + ":" + address.substr(prefix.size());
}

int start_connecting(const Endpoint& endpoint, std::string& error) {
  const int fd = open_socket(endpoint.address.ss_family);
  if (fd < 0) return fail(fd, "there is no socket", error);
  if (!endpoint.is_local()) set_tcp_options(fd);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&endpoint.address), endpoint.size) != 0 &&
      errno != EINPROGRESS)
    return fail(fd, "no connection", error);
  return fd;
}

int connect_error(int fd) noexcept {
  int error = 0;
  socklen_t size = sizeof(error);
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  return error;
}

int accept_caller(int listener) noexcept {
  const int fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) return -1;
  set_tcp_options(fd);
  return out_of_the_way(fd);
}

bool is_same_user(int connected) noexcept {
  int family = 0;
  socklen_t size = sizeof(family);
  if (getsockopt(connected, SOL_SOCKET, SO_DOMAIN, &family, &size) != 0) return false;
  if (family != AF_UNIX) return true;
  ucred user{};
  size = sizeof(user);
  return getsockopt(connected, SOL_SOCKET, SO_PEERCRED, &user, &size) == 0 && user.uid == geteuid();
}

}  // namespace contextune::rank
