#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "catch.hpp"
#include "space_fixture.hpp"

using namespace contextune;
using namespace contextune::space;
using namespace contextune::space::test;

namespace {

std::string error_for(const std::string& path) {
  return message_of([&] { static_cast<void>(SpaceFile::load(path, device())); });
}

}  // namespace

TEST_CASE("A file that is missing, a folder or a named pipe is refused by name") {
  const Folder folder;
  const std::string missing = folder.path("none.lua");
  CHECK(error_for(missing).starts_with(missing + ": cannot open the space file: No such file"));
  CHECK(contains(error_for(missing), "CONTEXTUNE_SPACE"));
  CHECK(contains(error_for(folder.path("")), "is a folder, not a space file"));
  const std::string pipe = folder.path("pipe");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(contains(error_for(pipe), "is not a regular file"));
  CHECK(contains(error_for("/dev/zero"), "is not a regular file"));
  CHECK_FALSE(error_for(std::string("a\0b", 3)).empty());
}

TEST_CASE("An empty file declares nothing and is no error") {
  const Folder folder;
  CHECK(SpaceFile::load(folder.write("empty.lua", ""), device()).rules().empty());
}

TEST_CASE("A file that others may write is refused with the command that helps") {
  const Folder folder;
  const std::string path = folder.write("space.lua", "kernel 'k' {}");
  REQUIRE(::chmod(path.c_str(), 0666) == 0);
  CHECK(error_for(path) == path +
                               ": others may write this file; a space file is a program: take "
                               "that away with: chmod go-w '" +
                               path + "'");
  REQUIRE(::chmod(path.c_str(), 0644) == 0);
  CHECK(error_for(path).empty());
  // A group that is the user's own may write.
  REQUIRE(::chmod(path.c_str(), 0664) == 0);
  CHECK(error_for(path).empty());
}

TEST_CASE("A file of another user or another group's is refused") {
  if (::geteuid() != 0) {
    WARN("needs root, to give files away");
    return;
  }
  const Folder folder;
  const std::string path = folder.write("space.lua", "kernel 'k' {}");
  REQUIRE(::chown(path.c_str(), 12345, ::getegid()) == 0);
  CHECK(contains(error_for(path), "belongs to user 12345, but this process runs as user 0"));
  CHECK(contains(error_for(path), "chown 0 '" + path + "'"));
  REQUIRE(::chown(path.c_str(), 0, 12345) == 0);
  REQUIRE(::chmod(path.c_str(), 0660) == 0);
  CHECK(contains(error_for(path), "others may write this file"));
}

TEST_CASE("A symbolic link is judged by what it leads to") {
  const Folder folder;
  const std::string path = folder.write("space.lua", "kernel 'k' {}");
  const std::string link = folder.path("link.lua");
  REQUIRE(::symlink(path.c_str(), link.c_str()) == 0);
  CHECK(error_for(link).empty());
  REQUIRE(::chmod(path.c_str(), 0602) == 0);
  CHECK(contains(error_for(link), "others may write"));
}

TEST_CASE("A huge file is refused without being read") {
  const Folder folder;
  const std::string path = folder.write("huge.lua", "");
  REQUIRE(::truncate(path.c_str(), off_t{1} << 30) == 0);
  CHECK(contains(error_for(path), "has 1073741824 bytes, more than the 262144"));
}

TEST_CASE("Precompiled chunks and bytes that are no text are refused") {
  CHECK(contains(load_error("\x1bLua\x54"), "FILE: is a precompiled chunk"));
  CHECK(contains(load_error(std::string_view("--\n\n\0", 5)), "FILE:3: holds a NUL byte"));
  CHECK(contains(message_of([] {
                   static_cast<void>(
                       SpaceFile::parse(std::string(300000, ' '), "big.lua", device()));
                 }),
                 "big.lua: has more than the 262144 bytes"));
}

TEST_CASE("A byte-order mark is not part of the text") {
  CHECK(load_error("\xef\xbb\xbfkernel 'k' {}").empty());
}
