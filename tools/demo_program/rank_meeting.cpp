#include "rank_meeting.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto longest_wait = std::chrono::seconds(60);

[[noreturn]] void fail(const Place& place, const std::string& what) {
  std::fprintf(stderr, "rank %d of %d: %s\n", place.rank, place.ranks, what.c_str());
  std::exit(1);
}

bool read_variable(const char* name, int& to) {
  const char* const text = std::getenv(name);
  if (text == nullptr) return false;
  to = std::atoi(text);
  return true;
}

void give_to_all(const Place& place, int listener, const ncclUniqueId& id) {
  const auto until = Clock::now() + longest_wait;
  for (int served = 0; served < place.ranks - 1;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    pollfd waiting{listener, POLLIN, 0};
    if (left.count() <= 0 || poll(&waiting, 1, static_cast<int>(left.count())) <= 0)
      fail(place, "only " + std::to_string(served) + " other ranks came for the id");
    const int peer = accept(listener, nullptr, nullptr);
    if (peer < 0) continue;
    if (send(peer, &id, sizeof id, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof id)) ++served;
    close(peer);
  }
}

// A socket that a former run left behind refuses, and one that rank 0 has not made yet is missing.
void fetch(const Place& place, const sockaddr_un& address, ncclUniqueId& id) {
  const auto until = Clock::now() + longest_wait;
  for (;;) {
    const int peer = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool connected =
        connect(peer, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    const bool got =
        connected && recv(peer, &id, sizeof id, MSG_WAITALL) == static_cast<ssize_t>(sizeof id);
    close(peer);
    if (got) return;
    if (Clock::now() > until)
      fail(place, "rank 0 cannot be reached at " + std::string(address.sun_path));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace

Place place_of_this_process() {
  Place place;
  if (read_variable("RANK", place.rank) && read_variable("WORLD_SIZE", place.ranks)) {
    if (!read_variable("LOCAL_RANK", place.on_this_host)) place.on_this_host = place.rank;
  } else if (read_variable("OMPI_COMM_WORLD_RANK", place.rank)) {
    read_variable("OMPI_COMM_WORLD_SIZE", place.ranks);
    read_variable("OMPI_COMM_WORLD_LOCAL_RANK", place.on_this_host);
  } else if (read_variable("SLURM_PROCID", place.rank)) {
    read_variable("SLURM_NTASKS", place.ranks);
    read_variable("SLURM_LOCALID", place.on_this_host);
  } else {
    place = {};
  }
  if (place.ranks < 1 || place.rank < 0 || place.rank >= place.ranks)
    fail(place, "the environment names no rank");
  return place;
}

void share_id(const Place& place, const std::string& path, ncclUniqueId& id) {
  if (place.ranks == 1) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path)
    fail(place, "several ranks need --meet PATH, a short one");
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  if (place.rank != 0) return fetch(place, address, id);
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  unlink(path.c_str());
  if (bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener, place.ranks) != 0)
    fail(place, "no socket can be made at " + path);
  give_to_all(place, listener, id);
  close(listener);
  unlink(path.c_str());
}
