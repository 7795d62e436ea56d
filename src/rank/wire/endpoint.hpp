#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <string>

namespace contextune::rank {

/// The meaning of an `errno`. Unlike std::error_code::message it also works while the process ends
/// and its statics are destroyed, which the categories of errors are.
[[nodiscard]] std::string text_of_error(int error);

/// The place where ranks are reached. "unix:/FOLDER/NAME" is a socket in a folder, and "unix:NAME"
/// an abstract one of this host; both let in only processes of the same user. In "tcp:HOST:PORT"
/// ("tcp:[::1]:7000"), HOST may be several of one host, with commas between.
struct Endpoint {
  sockaddr_storage address{};
  socklen_t size = 0;

  [[nodiscard]] bool is_local() const noexcept { return address.ss_family == AF_UNIX; }
};

/// Whether `address` names a Unix socket.
[[nodiscard]] bool is_local_address(const std::string& address) noexcept;

/// Looks `address` up, which blocks as long as the resolver does for a host's name.
/// @param error a sentence, if it cannot be
/// @param attempt from 0: of several hosts, and several addresses of one, each is tried in turn
[[nodiscard]] bool find_endpoint(const std::string& address, Endpoint& endpoint, std::string& error,
                                 std::size_t attempt = 0);

/// A socket that listens there, or at a place of the system's choice if `address` is "unix:" or
/// "tcp:". At the name of a host it listens on every interface, as that name may well lead to the
/// host's loopback. It replaces a socket that a process that is no more has left in a folder.
/// -1, and why. All sockets made here neither block nor reach programs that are started, and take
/// no low number.
[[nodiscard]] int listen_at(const std::string& address, std::string& error);

/// Whether a socket stands in a folder on which nobody listens any more.
[[nodiscard]] bool is_left_over(const std::string& address);

/// Takes a socket that listens in a folder out of it.
void remove_listener(const std::string& address) noexcept;

/// The address at which others reach the listening socket; its host is "*" if that is for them to
/// know.
[[nodiscard]] std::string address_of_listener(int fd);

/// `address` with "*" replaced by the host that the connected socket comes from.
[[nodiscard]] std::string as_seen_from(int connected, const std::string& address);

/// A socket on the way to be connected. -1, and why.
[[nodiscard]] int start_connecting(const Endpoint& endpoint, std::string& error);
/// 0 once the socket is connected, else `errno`.
[[nodiscard]] int connect_error(int fd) noexcept;

/// The next one who called; -1 if there is none.
[[nodiscard]] int accept_caller(int listener) noexcept;

/// Whether the process at the other end is one of this user's. True for what is not local.
[[nodiscard]] bool is_same_user(int connected) noexcept;

}  // namespace contextune::rank
