#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "byte_proxy.hpp"
#include "catch.hpp"
#include "mentions.hpp"
#include "rank/wire/endpoint.hpp"
#include "rank/wire/free_descriptors.hpp"
#include "rank/wire/handshake.hpp"
#include "several_ranks.hpp"

using contextune::Agreement;
using contextune::Topic;
using contextune::Verdict;
using contextune::rank::SocketCoordinator;
using contextune::rank::SocketSettings;

namespace {

const Topic both{1, 1, {0, 1}};

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

// Sends it to whoever listens there, and reads what comes until the end. -1: there was none.
std::size_t bytes_back(const std::string& address, std::span<const std::byte> bytes,
                       double seconds = long_enough) {
  contextune::rank::Endpoint endpoint;
  std::string error;
  REQUIRE(contextune::rank::find_endpoint(address, endpoint, error));
  int fd = -1;
  while (fd < 0) fd = contextune::rank::start_connecting(endpoint, error);
  static_cast<void>(send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL));
  std::size_t total = 0;
  std::array<std::byte, 256> answer{};
  for (;;) {
    pollfd wait{fd, POLLIN, 0};
    if (poll(&wait, 1, static_cast<int>(seconds * 1000)) <= 0) {
      total = std::numeric_limits<std::size_t>::max();
      break;
    }
    const ssize_t got = recv(fd, answer.data(), answer.size(), 0);
    if (got <= 0) break;
    total += static_cast<std::size_t>(got);
  }
  close(fd);
  return total;
}

void check_they_agree(contextune::Coordinator& first, contextune::Coordinator& second,
                      std::uint64_t question) {
  const Topic topic{1, question, {0, 1}};
  first.say(topic, join_parts, bytes_of("x"), long_enough);
  second.say(topic, join_parts, bytes_of("y"), long_enough);
  CHECK(first.wait(topic, long_enough).decision == bytes_of("xy"));
  CHECK(second.wait(topic, long_enough).decision == bytes_of("xy"));
}

}  // namespace

TEST_CASE("A stranger is told nothing but the challenge, and disturbs nobody", "[stranger]") {
  Ranks ranks = make_ranks(test_settings(2));
  const SocketSettings settings = test_settings(2);
  const std::vector<std::byte> garbage(GENERATE(40U, 4000U, 100000U), std::byte{0x5a});
  SocketCoordinator hub(of_rank(settings, 0), test_deciders());
  CHECK(bytes_back(settings.address, garbage) <= contextune::rank::challenge_bytes);
  SocketCoordinator member(of_rank(settings, 1), test_deciders());
  check_they_agree(hub, member, 1);
}

TEST_CASE("However many strangers stay on the line, a rank gets in at once", "[stranger]") {
  const SocketSettings settings = test_settings(2);
  SocketCoordinator hub(of_rank(settings, 0), test_deciders());
  contextune::rank::Endpoint endpoint;
  std::string error;
  REQUIRE(contextune::rank::find_endpoint(settings.address, endpoint, error));
  std::vector<int> strangers;
  while (strangers.size() < 300) {
    const int fd = contextune::rank::start_connecting(endpoint, error);
    if (fd >= 0) strangers.push_back(fd);
  }
  SocketSettings quick = of_rank(settings, 1);
  quick.join_seconds = 5;  // nobody is given up for his silence in that time
  SocketCoordinator member(quick, test_deciders());
  check_they_agree(hub, member, 1);
  for (const int fd : strangers) close(fd);
}

TEST_CASE("Strangers that stay on the line take no more than a handful of descriptors",
          "[stranger]") {
  const SocketSettings settings = test_settings(2);
  SocketCoordinator hub(of_rank(settings, 0), test_deciders());
  contextune::rank::Endpoint endpoint;
  std::string error;
  REQUIRE(contextune::rank::find_endpoint(settings.address, endpoint, error));
  const std::size_t before = open_descriptors();
  constexpr std::size_t num_strangers = 200;
  std::vector<int> strangers;
  while (strangers.size() < num_strangers) {
    const int fd = contextune::rank::start_connecting(endpoint, error);
    if (fd >= 0) strangers.push_back(fd);
  }
  // It is the last in the queue: all strangers have been looked at.
  SocketCoordinator member(of_rank(settings, 1), test_deciders());
  check_they_agree(hub, member, 1);
  // Beside those of the member itself.
  CHECK(open_descriptors() <= before + num_strangers + 8 + 16);
  for (const int fd : strangers) close(fd);
}

TEST_CASE("Ranks agree through no descriptor that the program could close and have again",
          "[descriptors]") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return;  // built so, threads share the program's table (host/own_descriptors.cpp)
#endif
  const SocketSettings settings = test_settings(2);
  const std::size_t before = open_descriptors();
  SocketCoordinator hub(of_rank(settings, 0), test_deciders());
  SocketCoordinator member(of_rank(settings, 1), test_deciders());
  check_they_agree(hub, member, 1);
  CHECK(open_descriptors() == before);
  std::vector<int> theirs;
  for (int i = 0; i < 64; ++i) theirs.push_back(open("/dev/null", O_RDONLY));
  check_they_agree(hub, member, 2);
  for (const int fd : theirs) CHECK(close(fd) == 0);
  CHECK(open_descriptors() == before);
}

TEST_CASE("A stranger that says nothing is hung up on, even if nobody else calls", "[stranger]") {
  const SocketSettings settings = test_settings(2);
  SocketCoordinator hub(of_rank(settings, 0), test_deciders());
  CHECK(bytes_back(settings.address, {}, 10) == contextune::rank::challenge_bytes);
}

TEST_CASE("A process knows whether it has descriptors left for its program", "[stranger]") {
  const pid_t child = fork();
  if (child == 0) {
    std::vector<int> own;
    const rlimit few{600, 600};
    if (setrlimit(RLIMIT_NOFILE, &few) != 0) _exit(1);
    while (own.empty() || own.back() >= 0) own.push_back(open("/dev/null", O_RDONLY));
    for (std::size_t i = 0; i < 33; ++i) close(own[own.size() - 2 - i]);
    const bool just_enough = contextune::rank::has_free_descriptors(33) &&
                             !contextune::rank::has_free_descriptors(34) &&
                             contextune::rank::leaves_descriptors_to_program();
    static_cast<void>(open("/dev/null", O_RDONLY));
    _exit(just_enough && !contextune::rank::leaves_descriptors_to_program() ? 0 : 2);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("A rank with another secret is turned away", "[stranger]") {
  const SocketSettings settings = test_settings(2);
  SocketCoordinator hub(of_rank(settings, 0), test_deciders());
  SocketSettings wrong = of_rank(settings, 1);
  wrong.secret = "not that secret at all";
  {
    SocketCoordinator stranger(wrong, test_deciders());
    stranger.say(both, join_parts, bytes_of("evil"), long_enough);
    const Agreement agreement = stranger.wait(both, long_enough);
    CHECK(agreement.verdict == Verdict::Aborted);
    CHECK(mentions(agreement.why, "secret"));
  }
  SocketCoordinator member(of_rank(settings, 1), test_deciders());
  check_they_agree(hub, member, 1);
}

TEST_CASE("What was recorded from a rank opens no door", "[stranger]") {
  const SocketSettings settings = test_settings(2);
  const std::string tapped = settings.address + "-tapped";
  SocketCoordinator hub(of_rank(settings, 0), test_deciders());
  ByteProxy tap(tapped, settings.address, {});
  SocketSettings through = of_rank(settings, 1);
  through.address = tapped;
  SocketCoordinator member(through, test_deciders());
  check_they_agree(hub, member, 1);
  CHECK(bytes_back(settings.address, tap.recorded()) <= contextune::rank::challenge_bytes);
  check_they_agree(hub, member, 2);
}

TEST_CASE("A second process with the same rank is refused, and the first stays", "[stranger]") {
  const SocketSettings settings = test_settings(2);
  SocketCoordinator hub(of_rank(settings, 0), test_deciders());
  SocketCoordinator member(of_rank(settings, 1), test_deciders());
  check_they_agree(hub, member, 1);
  const std::uint32_t taken = GENERATE(0U, 1U);
  SocketCoordinator second(of_rank(settings, taken), test_deciders());
  second.say(both, join_parts, bytes_of("me too"), long_enough);
  const Agreement agreement = second.wait(both, long_enough);
  CHECK(agreement.verdict == Verdict::Aborted);
  CHECK_FALSE(second.lost().empty());
  check_they_agree(hub, member, 2);
}

TEST_CASE("A rank of another job is refused by name", "[stranger]") {
  const SocketSettings settings = test_settings(2);
  SocketCoordinator hub(of_rank(settings, 0), test_deciders());
  SocketSettings other = of_rank(settings, 1);
  other.job = "another";
  SocketCoordinator lost(other, test_deciders());
  lost.say(both, join_parts, bytes_of("x"), long_enough);
  CHECK(mentions(lost.wait(both, long_enough).why, "another job"));
}

TEST_CASE("Past one host nothing starts without a secret", "[stranger]") {
  SocketSettings settings = test_settings(2);
  settings.address = "tcp:127.0.0.1:1";
  settings.secret = GENERATE("", "too short");
  SocketCoordinator open(settings, test_deciders());
  open.say(both, join_parts, bytes_of("x"), long_enough);
  CHECK(mentions(open.wait(both, long_enough).why, "secret of at least 16"));
}

TEST_CASE("In a child of fork every topic is aborted, and the parent's go on", "[stranger]") {
  const SocketSettings settings = test_settings(2);
  SocketCoordinator hub(of_rank(settings, 0), test_deciders());
  SocketCoordinator member(of_rank(settings, 1), test_deciders());
  check_they_agree(hub, member, 1);
  const pid_t child = fork();
  if (child == 0) {
    member.say(both, join_parts, bytes_of("x"), 1);
    const Agreement agreement = member.wait(both, 1);
    member.~SocketCoordinator();
    _exit(agreement.verdict == Verdict::Aborted && mentions(agreement.why, "child") ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  check_they_agree(hub, member, 2);
}
