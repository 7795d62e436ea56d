#include "rank/meeting/surroundings.hpp"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "catch.hpp"
#include "rank/wire/endpoint.hpp"
#include "tests/scratch_folder.hpp"

using namespace contextune::rank;
namespace fs = std::filesystem;

namespace {

std::string own_folder(const std::string& parent) {
  return parent + "/contextune-" + std::to_string(geteuid());
}

mode_t mode_of(const std::string& path) {
  struct stat status {};
  REQUIRE(stat(path.c_str(), &status) == 0);
  return status.st_mode & 07777U;
}

}  // namespace

TEST_CASE("A folder of the user's own is made where nobody else can enter", "[surroundings]") {
  const ScratchFolder scratch;
  umask(0);
  CHECK(private_folder("", scratch.path()) == own_folder(scratch.path()));
  CHECK(mode_of(own_folder(scratch.path())) == 0700);
  CHECK(private_folder("", scratch.path()) == own_folder(scratch.path()));
}

TEST_CASE("A runtime folder is taken if it is private", "[surroundings]") {
  const ScratchFolder scratch;
  const std::string runtime = scratch.path("run");
  fs::create_directory(runtime);
  REQUIRE(chmod(runtime.c_str(), 0700) == 0);
  CHECK(private_folder(runtime, scratch.path()) == runtime + "/contextune");
  CHECK(mode_of(runtime + "/contextune") == 0700);
  REQUIRE(chmod(runtime.c_str(), 0755) == 0);
  CHECK(private_folder(runtime, scratch.path()) == own_folder(scratch.path()));
  CHECK(private_folder("relative", scratch.path()) == own_folder(scratch.path()));
}

TEST_CASE("A folder that others may enter, a link or a file is not taken", "[surroundings]") {
  const ScratchFolder scratch;
  const std::string own = own_folder(scratch.path());
  SECTION("open to others") {
    fs::create_directory(own);
    REQUIRE(chmod(own.c_str(), 0750) == 0);
  }
  SECTION("a link") {
    const std::string target = scratch.path("target");
    fs::create_directory(target);
    REQUIRE(chmod(target.c_str(), 0700) == 0);
    fs::create_directory_symlink(target, own);
  }
  SECTION("a file") {
    fclose(fopen(own.c_str(), "w"));
  }
  CHECK(private_folder("", scratch.path()).empty());
}

TEST_CASE("A folder whose path leaves no room for a socket's name is not taken", "[surroundings]") {
  const ScratchFolder scratch;
  const std::string deep = scratch.path(std::string(90, 'x'));
  fs::create_directory(deep);
  REQUIRE(chmod(deep.c_str(), 0700) == 0);
  CHECK(private_folder(deep, scratch.path()) == own_folder(scratch.path()));
}

TEST_CASE("What ended processes left is removed, what is used or new stays", "[surroundings]") {
  const ScratchFolder scratch;
  const auto address = [&](const char* name) { return "unix:" + scratch.path(name); };
  const auto make_old = [&](const char* name) {
    const fs::path path = scratch.path(name);
    fs::last_write_time(path, fs::last_write_time(path) - std::chrono::hours(1));
  };
  std::string error;
  const int used = listen_at(address("used"), error);
  close(listen_at(address("old"), error));
  close(listen_at(address("new"), error));
  fclose(fopen((scratch.path("letter")).c_str(), "w"));
  for (const char* name : {"used", "old", "letter"}) make_old(name);
  remove_leftovers(scratch.path());
  CHECK(fs::exists(scratch.path("used")));
  CHECK(fs::exists(scratch.path("new")));
  CHECK(fs::exists(scratch.path("letter")));
  CHECK_FALSE(fs::exists(scratch.path("old")));
  close(used);
}

TEST_CASE("Scripts around a rank do not hide who started it", "[surroundings]") {
  // The child stands for a script of one rank: it has the variable, and this process has not.
  const std::string direct = starter_of_ranks("CONTEXTUNE_TEST_NOBODY_HAS_IT");
  CHECK(direct.find('-') != std::string::npos);
  CHECK(direct == starter_of_ranks("CONTEXTUNE_TEST_NOBODY_HAS_IT"));
  CHECK(direct.starts_with(std::to_string(getppid()) + "-"));
  CHECK_FALSE(direct.ends_with("-"));
}
