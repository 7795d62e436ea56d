#include "catch.hpp"
#include "space/starter_file.hpp"
#include "space_fixture.hpp"

using namespace contextune;
using namespace contextune::space;
using namespace contextune::space::test;

namespace {

DiscoveredKernel discovered(const std::string& name, double share) {
  DiscoveredKernel kernel;
  kernel.kernel = name;
  kernel.parameters = "int, float, float const*, float*";
  kernel.num_arguments = 4;
  kernel.launches = 400;
  kernel.share = share;
  kernel.seconds = share * 0.01;
  kernel.grid = {1024, 2, 1};
  kernel.block = {256, 1, 1};
  kernel.registers = 32;
  kernel.shared_bytes = 4096;
  return kernel;
}

SpaceFile load_text(const std::string& text) {
  const Folder folder;
  return SpaceFile::load(folder.write("starter.lua", text), device());
}

}  // namespace

TEST_CASE("A starter file lists the kernels that carry the time and loads as it is") {
  const std::vector<DiscoveredKernel> kernels = {
      discovered("small", 0.03), discovered("softmax<32>", 0.30), discovered("saxpy", 0.66),
      discovered("tiny", 0.01)};
  const std::string text = write_starter(kernels);
  INFO(text);
  const SpaceFile file = load_text(text);
  REQUIRE(file.rules().size() == 2);
  CHECK(file.rules()[0]->kernel() == "saxpy");
  CHECK(file.rules()[1]->kernel() == "softmax<32>");
  CHECK(contains(text, "66.0 % of the time: 400 launches of 16.50 us"));
  CHECK(contains(text, "grid 1024 x 2, block 256, 32 registers"));
  CHECK(contains(text, "0 bytes static and 4096 dynamic"));
  CHECK(contains(text, "params = { \"i32\", \"f32\", \"ptr\", \"ptr\" },  -- int, float"));
  CHECK(contains(text, "--   small: "));
  TestLaunch launch = saxpy_launch();
  CHECK(file.rules()[0]->configs(launch.view()).empty());
}

TEST_CASE("A starter file works once its comments are filled in") {
  std::string text = write_starter(std::vector{discovered("saxpy", 1.0)});
  for (const std::string line : {"space =", "prune =", "apply =", "  launch.grid.x",
                                 "  launch.block.x", "end,", "key   ="}) {
    const std::size_t at = text.find("  -- " + line);
    REQUIRE(at != std::string::npos);
    text.erase(at + 2, 3);
  }
  INFO(text);
  const SpaceFile file = load_text(text);
  REQUIRE(file.rules().size() == 1);
  TestLaunch launch = saxpy_launch(77);
  LaunchReads reads;
  CHECK(file.rules()[0]->key(launch.view(), reads).to_string() == "key=77");
  const std::vector<Config> configs = file.rules()[0]->configs(launch.view());
  REQUIRE(configs.size() == 5);
  const LaunchChange change = file.rules()[0]->apply(configs[0], launch.view(), reads);
  CHECK(change.block == std::array<std::uint32_t, 3>{64, 1, 1});
  CHECK(change.grid == std::array<std::uint32_t, 3>{4096, 1, 1});
}

TEST_CASE("Names of any kind neither break nor leave their place in a starter file") {
  const std::string hostile = "a\"b\\c]]";
  std::vector<DiscoveredKernel> kernels = {discovered(hostile, 0.4),
                                           discovered("line\nerror('x')", 0.3),
                                           discovered("k<1>", 0.2), discovered("k<(int)1>", 0.1)};
  kernels[0].parameters = "int,\nerror(), x, y";
  kernels[2].parameters.clear();
  const std::string text = write_starter(kernels, 1.0);
  INFO(text);
  const SpaceFile file = load_text(text);
  REQUIRE(file.rules().size() == 2);
  CHECK(file.rules()[0]->kernel() == hostile);
  CHECK(file.rules()[1]->kernel() == "k<1>");
  CHECK(contains(text, "-- params = { \"?\", \"?\", \"?\", \"?\" }"));
}

TEST_CASE("A starter file without kernels is an empty space file") {
  CHECK(load_text(write_starter({})).rules().empty());
}
