#include "rendezvous.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "error.hpp"
#include "segment.hpp"
#include "settings.hpp"

namespace simnccl {

namespace {

constexpr auto longest_wait_for_listener = std::chrono::seconds(20);

/// As NCCL's own begins, since 2.19: 64 random bits and the address at which its maker listens.
struct IdContent {
  std::uint64_t random;
  union {
    sockaddr_in internet;
    sockaddr_in6 internet6;
  } address;
  char magic[8];
  std::uint64_t key;
};
/// What NCCL takes for random bits where NCCL_COMM_ID gives the address.
constexpr std::uint64_t not_random = 0x0280028002800280;
constexpr char magic[8] = {'S', 'I', 'M', 'N', 'C', 'C', 'L', '1'};

socklen_t address_of(std::uint64_t key, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  const std::string& folder = Settings::instance().folder;
  // An abstract name, unless the ranks are in several network namespaces.
  char* const name = address.sun_path + (folder.empty() ? 1 : 0);
  const std::size_t room = sizeof address.sun_path - 1;
  const int length = std::snprintf(name, room, "%s%ssimnccl-%016llx", folder.c_str(),
                                   folder.empty() ? "" : "/", static_cast<unsigned long long>(key));
  if (length < 0 || static_cast<std::size_t>(length) >= room)
    throw Error{ncclSystemError, "the name of SIMNCCL_FOLDER is too long"};
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                static_cast<std::size_t>(length));
}

/// An address of this host: the first that others can reach, else its loopback.
sockaddr_in own_address() {
  sockaddr_in own{};
  own.sin_family = AF_INET;
  own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  own.sin_port = htons(1);  // nobody listens there
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return own;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    if ((one->ifa_flags & IFF_UP) == 0 || (one->ifa_flags & IFF_LOOPBACK) != 0) continue;
    sockaddr_in found{};
    std::memcpy(&found, one->ifa_addr, sizeof found);
    own.sin_addr = found.sin_addr;
    break;
  }
  freeifaddrs(all);
  return own;
}

void send_file(int to, int file) {
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &file, sizeof file);
  sendmsg(to, &message, MSG_NOSIGNAL);
}

int receive_file(int from) {
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (recvmsg(from, &message, MSG_CMSG_CLOEXEC) != 1) return -1;
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return -1;
  int file = -1;
  std::memcpy(&file, CMSG_DATA(header), sizeof file);
  return file;
}

// Until every rank has got the file.
void serve(int listener) {
  int file = -1;
  int served = 0;
  for (int ranks = 1; served < ranks;) {
    const int client = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    std::int32_t asked = 0;
    if (recv(client, &asked, sizeof asked, MSG_WAITALL) == sizeof asked && asked > 0) {
      if (file < 0) {
        ranks = asked;
        try {
          file = Segment::create_file(ranks);
        } catch (const Error&) {
          close(client);
          break;  // the ranks see the socket closed
        }
      }
      send_file(client, file);
      ++served;
    }
    close(client);
  }
  if (file >= 0) close(file);
  close(listener);
}

}  // namespace

ncclUniqueId make_unique_id() {
  IdContent content{};
  std::memcpy(content.magic, magic, sizeof magic);
  if (getrandom(&content.key, sizeof content.key, 0) != sizeof content.key ||
      getrandom(&content.random, sizeof content.random, 0) != sizeof content.random)
    throw Error{ncclSystemError, "no random numbers"};
  if (std::getenv("NCCL_COMM_ID") != nullptr) content.random = not_random;
  content.address.internet = own_address();
  sockaddr_un address{};
  const socklen_t length = address_of(content.key, address);
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0 || bind(listener, reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      listen(listener, 64) != 0) {
    if (listener >= 0) close(listener);
    throw Error{ncclSystemError, "no socket to meet the other ranks"};
  }
  std::thread thread(serve, listener);
  (void)pthread_setname_np(thread.native_handle(), "nccl-sim-root");
  thread.detach();
  ncclUniqueId id{};
  std::memcpy(&id, &content, sizeof content);
  return id;
}

int fetch_shared_file(const ncclUniqueId& id, int ranks) {
  IdContent content{};
  std::memcpy(&content, &id, sizeof content);
  require(std::memcmp(content.magic, magic, sizeof magic) == 0, ncclInvalidArgument,
          "the unique id was not made by ncclGetUniqueId");
  sockaddr_un address{};
  const socklen_t length = address_of(content.key, address);
  const auto until = std::chrono::steady_clock::now() + longest_wait_for_listener;
  for (;;) {
    const int peer = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (peer < 0) throw Error{ncclSystemError, "no socket to meet the other ranks"};
    if (connect(peer, reinterpret_cast<const sockaddr*>(&address), length) == 0) {
      const std::int32_t asked = ranks;
      int file = -1;
      if (send(peer, &asked, sizeof asked, MSG_NOSIGNAL) == sizeof asked) file = receive_file(peer);
      close(peer);
      if (file >= 0) return file;
    } else {
      close(peer);
    }
    if (std::chrono::steady_clock::now() > until)
      throw Error{ncclSystemError, "the process that made the unique id cannot be reached"};
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace simnccl
