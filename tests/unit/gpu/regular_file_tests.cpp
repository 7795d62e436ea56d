#include "gpu/driver/regular_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <contextune/error.hpp>
#include <filesystem>
#include <fstream>

#include "catch.hpp"
#include "gpu/driver/byte_source.hpp"
#include "tests/scratch_folder.hpp"

using contextune::gpu::FileSource;
using contextune::gpu::open_regular_file;
using contextune::gpu::read_regular_file;

namespace {

std::string error_of(const std::string& path, std::uint64_t most_bytes) {
  try {
    return "read " + read_regular_file(path, most_bytes);
  } catch (const contextune::Error& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("What is no regular file is not waited for, nor read without end", "[regular_file]") {
  const ScratchFolder scratch;
  const std::string pipe = scratch.path("pipe");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  alarm(20);  // opening the pipe would wait for ever
  for (const std::string& path : {pipe, std::string("/dev/zero"), scratch.path("")}) {
    CHECK(error_of(path, 100) == path + ": is not a regular file; copy what it holds into one");
    CHECK(open_regular_file(path) == -1);
    CHECK(errno == ENOTSUP);
    CHECK_FALSE(FileSource(path).is_open());
  }
  alarm(0);
  CHECK(error_of(scratch.path("nowhere"), 100).find("No such file") != std::string::npos);
}

TEST_CASE("A file is read up to a stated size, whatever it says of itself", "[regular_file]") {
  const ScratchFolder scratch;
  const std::string path = scratch.path("file");
  std::ofstream(path) << std::string(1 << 20, 'x');
  CHECK(error_of(path, 1 << 20) == "read " + std::string(1 << 20, 'x'));
  std::ofstream(path, std::ios::app) << 'x';
  CHECK(error_of(path, 1 << 20).starts_with(path + ": is larger than the 1 MiB that are read"));
  // One of the kernel's has no size before it is read.
  REQUIRE(std::filesystem::file_size("/proc/self/maps") == 0);
  CHECK(error_of("/proc/self/maps", 1 << 20).starts_with("read "));
  CHECK(error_of("/proc/self/maps", 1).find("is larger than") != std::string::npos);
}
