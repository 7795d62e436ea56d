// Whose files the rank log writes to.
#include "log/log_folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "catch.hpp"
#include "environment/root_folder.hpp"
#include "log/rank_log.hpp"
#include "tests/file_text.hpp"
#include "tests/scratch_folder.hpp"

using contextune::LogLevel;
using contextune::log::RankLog;

namespace {

constexpr uid_t stranger = 12345;

bool is_root() {
  return ::geteuid() == 0;  // only root can make files of others
}

// What a log in that folder says of its first line: 0, or why it was lost.
int error_in(const std::string& folder) {
  RankLog::Settings wanted;
  wanted.folder = folder;
  RankLog log(wanted);
  log.write(LogLevel::Info, "start", {});
  CHECK(log.lines_written() + log.lines_lost() == 1);
  return log.last_error();
}

}  // namespace

TEST_CASE("A rank log is never written through a link", "[log_folder]") {
  const ScratchFolder scratch;
  const std::string precious = scratch.path("precious");
  std::ofstream(precious) << "a line of the user's\n";
  std::filesystem::create_directory(scratch.path("logs"));
  const std::string link = scratch.path("logs/rank-0.log");
  std::filesystem::create_symlink(precious, link);
  CHECK(error_in(scratch.path("logs")) == ELOOP);
  if (is_root()) REQUIRE(::lchown(link.c_str(), stranger, stranger) == 0);
  CHECK(error_in(scratch.path("logs")) == ELOOP);
  CHECK(text_of(precious) == "a line of the user's\n");
  std::filesystem::remove(link);
  std::filesystem::create_symlink(scratch.path("not_there"), link);
  CHECK(error_in(scratch.path("logs")) == ELOOP);
  CHECK_FALSE(std::filesystem::exists(scratch.path("not_there")));
}

TEST_CASE("A stranger's link to the folder of the logs is not followed", "[log_folder]") {
  const ScratchFolder scratch;
  std::filesystem::create_directory(scratch.path("logs"));
  const std::string link = scratch.path("link");
  std::filesystem::create_directory_symlink(scratch.path("logs"), link);
  CHECK(error_in(link) == 0);
  if (!is_root()) return;
  std::filesystem::remove(scratch.path("logs/rank-0.log"));
  REQUIRE(::lchown(link.c_str(), stranger, stranger) == 0);
  CHECK(error_in(link) == ELOOP);
  CHECK(std::filesystem::is_empty(scratch.path("logs")));
}

TEST_CASE("A folder in which others could swap the log has none", "[log_folder]") {
  const ScratchFolder scratch;
  const std::string folder = scratch.path("logs");
  std::filesystem::create_directory(folder);
  REQUIRE(::chmod(folder.c_str(), 0777) == 0);
  CHECK(error_in(folder) == EPERM);
  REQUIRE(::chmod(folder.c_str(), 01777) == 0);
  CHECK(error_in(folder) == 0);
  if (!is_root()) return;
  REQUIRE(::chmod(folder.c_str(), 0755) == 0);
  REQUIRE(::chown(folder.c_str(), stranger, stranger) == 0);
  CHECK(error_in(folder) == EPERM);
}

TEST_CASE("A log that is another user's, or may be, is not written to", "[log_folder]") {
  const ScratchFolder scratch;
  const std::string folder = scratch.path("logs");
  std::filesystem::create_directory(folder);
  REQUIRE(::chmod(folder.c_str(), 01777) == 0);
  const std::string precious = scratch.path("precious");
  std::ofstream(precious) << "a line of the user's\n";
  std::filesystem::create_hard_link(precious, folder + "/rank-0.log");
  CHECK(error_in(folder) == EMLINK);
  if (is_root()) {
    REQUIRE(::chown(precious.c_str(), stranger, stranger) == 0);
    CHECK(error_in(folder) == EPERM);
  }
  CHECK(text_of(precious) == "a line of the user's\n");
}

TEST_CASE("Nothing is made in the jail of a program that has called chroot", "[log_folder]") {
  if (!is_root()) return;
  const ScratchFolder scratch;
  const std::string jail = scratch.path("jail");
  std::filesystem::create_directory(jail);
  const pid_t child = fork();
  if (child == 0) {
    RankLog::Settings wanted;
    wanted.folder = scratch.path("logs");
    RankLog log(wanted);
    contextune::keep_root_folder();
    if (::chroot(jail.c_str()) != 0) _exit(1);
    log.write(LogLevel::Info, "start", {});
    _exit(log.last_error() == EXDEV ? 0 : 2);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(std::filesystem::is_empty(jail));
}

TEST_CASE("A second name of a log is the user's own where nobody else could have made it",
          "[log_folder]") {
  const ScratchFolder scratch;
  REQUIRE(error_in(scratch.path("logs")) == 0);
  std::filesystem::create_hard_link(scratch.path("logs/rank-0.log"), scratch.path("backup"));
  CHECK(error_in(scratch.path("logs")) == 0);
}
