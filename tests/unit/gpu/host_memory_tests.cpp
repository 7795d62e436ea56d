#include "gpu/memory/host_memory.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "catch.hpp"
#include "tests/scratch_folder.hpp"

using contextune::gpu::available_host_memory;

namespace {

/// A file system with only what a test writes.
class Root {
 public:
  void write(const std::string& file, const std::string& text) const {
    const std::filesystem::path path = folder_.path(file);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  [[nodiscard]] std::size_t available() const { return available_host_memory(folder_.path("")); }

 private:
  ScratchFolder folder_;
};

constexpr const char* meminfo = "MemTotal:  4000 kB\nMemFree: 1 kB\nMemAvailable:  1000 kB\n";

}  // namespace

TEST_CASE("Without a cgroup's limit, what the system has available is available", "[host]") {
  const Root root;
  root.write("proc/meminfo", meminfo);
  CHECK(root.available() == 1000 * 1024);
  root.write("proc/self/cgroup", "0::/a/b\n");
  root.write("sys/fs/cgroup/a/b/memory.max", "max\n");
  root.write("sys/fs/cgroup/a/b/memory.current", "70000\n");
  CHECK(root.available() == 1000 * 1024);
}

TEST_CASE("The tightest of the cgroups around a process limits it", "[host]") {
  const Root root;
  root.write("proc/meminfo", meminfo);
  root.write("proc/self/cgroup", "0::/a/b\n");
  root.write("sys/fs/cgroup/a/b/memory.max", "500000\n");
  root.write("sys/fs/cgroup/a/b/memory.current", "100000\n");
  CHECK(root.available() == 400000);
  root.write("sys/fs/cgroup/a/memory.max", "600000\n");
  root.write("sys/fs/cgroup/a/memory.current", "300000\n");
  CHECK(root.available() == 300000);
  // As a container sees it.
  root.write("sys/fs/cgroup/memory.max", "200000\n");
  root.write("sys/fs/cgroup/memory.current", "300000\n");
  CHECK(root.available() == 0);
}

TEST_CASE("Cgroups of the first version limit as well", "[host]") {
  const Root root;
  root.write("proc/meminfo", meminfo);
  root.write("proc/self/cgroup", "3:cpu:/a\n7:memory:/\n");
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "500000\n");
  root.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "100000\n");
  CHECK(root.available() == 400000);
}

TEST_CASE("A system that says nothing has nothing available", "[host]") {
  CHECK(Root().available() == 0);
  CHECK(available_host_memory() > 0);
}
