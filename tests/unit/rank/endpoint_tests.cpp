#include "rank/wire/endpoint.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>

#include "catch.hpp"
#include "mentions.hpp"
#include "tests/scratch_folder.hpp"

using namespace contextune::rank;

namespace {

bool answers(const std::string& address) {
  Endpoint endpoint;
  std::string error;
  REQUIRE(find_endpoint(address, endpoint, error));
  const int fd = start_connecting(endpoint, error);
  if (fd < 0) return false;
  pollfd wait{fd, POLLOUT, 0};
  const bool connected = poll(&wait, 1, 10000) == 1 && connect_error(fd) == 0;
  close(fd);
  return connected;
}

std::string port_of(int listener) {
  const std::string address = address_of_listener(listener);
  return address.substr(address.rfind(':') + 1);
}

}  // namespace

TEST_CASE("A socket in a folder is found there, and gone when it is taken out", "[endpoint]") {
  const ScratchFolder folder;
  const std::string address = "unix:" + folder.path("meet");
  std::string error;
  const int listener = listen_at(address, error);
  REQUIRE(error.empty());
  CHECK(is_local_address(address));
  CHECK(address_of_listener(listener) == address);
  CHECK(answers(address));
  remove_listener(address);
  CHECK_FALSE(answers(address));
  close(listener);
}

TEST_CASE("What a process that is no more left in a folder is replaced, what is used is not",
          "[endpoint]") {
  const ScratchFolder folder;
  const std::string address = "unix:" + folder.path("meet");
  std::string error;
  close(listen_at(address, error));
  const int listener = listen_at(address, error);
  REQUIRE(error.empty());
  CHECK(listen_at(address, error) == -1);
  CHECK(mentions(error, address));
  CHECK(answers(address));
  close(listener);
}

TEST_CASE("A file that is no socket is left alone", "[endpoint]") {
  const ScratchFolder folder;
  const std::string path = folder.path("letter");
  close(open(path.c_str(), O_CREAT | O_WRONLY, 0600));
  std::string error;
  CHECK(listen_at("unix:" + path, error) == -1);
  CHECK(std::filesystem::is_regular_file(path));
}

TEST_CASE("At the name of a host every interface is listened on, at an address only its own",
          "[endpoint]") {
  std::string error;
  const int any = listen_at("tcp:", error);
  const std::string port = port_of(any);
  close(any);
  // Nobody has to know the name for that.
  const int named = listen_at("tcp:no-such-host.invalid:" + port, error);
  REQUIRE(named >= 0);
  CHECK(answers("tcp:127.0.0.1:" + port));
  CHECK(answers("tcp:127.0.0.2:" + port));
  close(named);
  const int local = listen_at("tcp:127.0.0.1:" + port, error);
  REQUIRE(local >= 0);
  CHECK(answers("tcp:127.0.0.1:" + port));
  CHECK_FALSE(answers("tcp:127.0.0.2:" + port));
  close(local);
}

TEST_CASE("Of several hosts each is tried in turn", "[endpoint]") {
  std::string error;
  const auto host_at = [&](std::size_t attempt) {
    Endpoint endpoint;
    REQUIRE(find_endpoint("tcp:127.0.0.2,[::1],127.0.0.3:7000", endpoint, error, attempt));
    std::array<char, 64> text{};
    getnameinfo(reinterpret_cast<const sockaddr*>(&endpoint.address), endpoint.size, text.data(),
                text.size(), nullptr, 0, NI_NUMERICHOST);
    return std::string(text.data());
  };
  CHECK(host_at(0) == "127.0.0.2");
  CHECK(host_at(1) == "::1");
  CHECK(host_at(2) == "127.0.0.3");
  CHECK(host_at(3) == "127.0.0.2");
}

TEST_CASE("What is no address is said", "[endpoint]") {
  const std::string address =
      GENERATE("", "unix:", "here", "tcp:", "tcp:host", "tcp::7000", "tcp:host:", "tcp:host:0",
               "tcp:host:70000", "tcp:host:7x", "tcp:,:70", "tcp:127.0.0.1,:0",
               "unix:/" + std::string(200, 'x'));
  Endpoint endpoint;
  std::string error;
  CHECK_FALSE(find_endpoint(address, endpoint, error));
  CHECK_FALSE(error.empty());
}

TEST_CASE("Sockets take no low number and reach no program that is started", "[endpoint]") {
  std::string error;
  const int listener = listen_at("unix:", error);
  CHECK(listener > 2);
  CHECK(listener >= 100);
  CHECK((fcntl(listener, F_GETFD) & FD_CLOEXEC) != 0);
  close(listener);
}
