#include "catch.hpp"
#include "space_fixture.hpp"

using namespace contextune;
using namespace contextune::space::test;

namespace {

constexpr const char* saxpy = R"(
kernel "saxpy_grid_stride" {                      -- demangled name without parameters
  params = { "i32", "f32", "ptr", "ptr" },
  key    = function(launch) return launch.args[1] end,
  space  = { block = {64, 128, 256, 512}, per_sm = {1, 2, 4, 8} },
  prune  = function(config, launch) return config.block * config.per_sm <= 2048 end,
  apply  = function(config, launch)
    launch.block.x = config.block
    launch.grid.x  = config.per_sm * device.num_sms
  end,
}
)";

std::string shown(const std::vector<Config>& configs) {
  std::string text;
  for (const Config& config : configs) {
    text += (text.empty() ? "" : "; ") + config.to_string();
  }
  return text;
}

std::vector<Config> configs_of(const std::string& body) {
  TestLaunch launch = saxpy_launch();
  return one_rule("kernel \"k\" { " + body + " }")->configs(launch.view());
}

LaunchChange change_of(const std::string& body, LaunchReads& reads,
                       TestLaunch launch = saxpy_launch()) {
  const auto rule = one_rule(with_apply(body));
  return rule->apply(rule->configs(launch.view()).at(0), launch.view(), reads);
}

LaunchChange change_of(const std::string& body) {
  LaunchReads reads;
  return change_of(body, reads);
}

using Extent = std::array<std::uint32_t, 3>;

}  // namespace

TEST_CASE("A declared kernel has a key, pruned configs, and what they make of a launch") {
  const auto rule = one_rule(saxpy);
  TestLaunch launch = saxpy_launch(1000);
  CHECK(rule->kernel() == "saxpy_grid_stride");
  CHECK(contains(rule->origin(), "space.lua:2"));
  LaunchReads reads;
  CHECK(rule->key(launch.view(), reads).to_string() == "key=1000");
  CHECK(to_string(reads) == "arg0");

  const std::vector<Config> configs = rule->configs(launch.view());
  CHECK(configs.size() == 15);  // 512 * 8 is pruned
  CHECK(configs.front().to_string() == "block=64 per_sm=1");
  CHECK(configs.back().to_string() == "block=512 per_sm=4");

  reads = {};
  const LaunchChange change = rule->apply(configs[2], launch.view(), reads);
  CHECK(configs[2].to_string() == "block=64 per_sm=4");
  CHECK(change.block == Extent{64, 1, 1});
  CHECK(change.grid == Extent{528, 1, 1});
  CHECK_FALSE(change.shared_bytes);
  CHECK_FALSE(change.cluster);
  CHECK(change.function.empty());
  CHECK_FALSE(rule->co_resident());
  CHECK_FALSE(rule->n_warmup());
  CHECK_FALSE(rule->n_repeat());
}

TEST_CASE("A kernel may be declared to wait for others") {
  CHECK(one_rule("kernel \"k\" { co_resident = true }")->co_resident());
  CHECK_FALSE(one_rule("kernel \"k\" { co_resident = false }")->co_resident());
}

TEST_CASE("A product goes over sorted parameter names, the first varying slowest") {
  const std::string apply = ", apply = function(config, launch) end";
  CHECK(shown(configs_of("space = { z = {1, 2}, a = {\"x\", \"y\"} }" + apply)) ==
        "a=x z=1; a=x z=2; a=y z=1; a=y z=2");
  CHECK(shown(configs_of("space = { f = {0.5, 2.0}, b = {true, false} }" + apply)) ==
        "b=true f=0.5; b=true f=2.0; b=false f=0.5; b=false f=2.0");
}

TEST_CASE("Listed configs keep their order and their parameters are sorted") {
  CHECK(shown(configs_of("configs = { { w = 2, v = 1 }, { v = 0, w = 0 } }, "
                         "apply = function(config, launch) end")) == "v=1 w=2; v=0 w=0");
}

TEST_CASE("Variants choose another function before apply runs") {
  const auto rule = one_rule(R"(
    kernel "gemm<64, 64>" {
      variants = { "gemm<64, 64>", "gemm<128, 64>" },
      space = { stages = {2, 3} },
      apply = function(config, launch)
        if launch.kernel == "gemm<128, 64>" then launch.grid.x = ceil_div(launch.grid.x, 2) end
        launch.shared_bytes = config.stages * 1024
      end,
      n_warmup = 0, n_repeat = 7,
    })");
  TestLaunch launch = saxpy_launch();
  const std::vector<Config> configs = rule->configs(launch.view());
  REQUIRE(configs.size() == 4);
  CHECK(configs[2].get_string("variant") == "gemm<128, 64>");
  CHECK(configs[2].get_int("stages") == 2);
  LaunchReads reads;
  const LaunchChange same = rule->apply(configs[1], launch.view(), reads);
  CHECK(same.function.empty());  // its own name: the same function
  CHECK(same.shared_bytes == 3072U);
  CHECK_FALSE(same.grid);
  CHECK(to_string(reads).empty());
  const LaunchChange other = rule->apply(configs[3], launch.view(), reads);
  CHECK(other.function == "gemm<128, 64>");
  CHECK(other.grid == Extent{512, 1, 1});
  CHECK(to_string(reads) == "grid");
  CHECK(rule->n_warmup() == 0);
  CHECK(rule->n_repeat() == 7);
}

TEST_CASE("Variants alone need no apply") {
  const auto rule = one_rule(R"(kernel "a" { variants = { "b" } })");
  TestLaunch launch = saxpy_launch();
  LaunchReads reads;
  CHECK(rule->apply(rule->configs(launch.view()).at(0), launch.view(), reads).function == "b");
}

TEST_CASE("apply writes extents whole or one dimension at a time") {
  CHECK(change_of("launch.block = 128").block == Extent{128, 1, 1});
  CHECK(change_of("launch.block = {32, 4}").block == Extent{32, 4, 1});
  CHECK(change_of("launch.grid = { y = 7 }").grid == Extent{1, 7, 1});
  CHECK(change_of("launch.block.y = 4 launch.block = 64").block == Extent{64, 1, 1});
  CHECK(change_of("launch.grid.x = 1024 / 8").grid == Extent{128, 1, 1});  // 128.0 is whole
  CHECK(change_of("launch.cluster = 2").cluster == Extent{2, 1, 1});
  CHECK(change_of("launch.shared_bytes = 0").shared_bytes == 0U);
}

TEST_CASE("An apply that writes nothing leaves the launch as the program wrote it") {
  CHECK(change_of("local x = 1") == LaunchChange{});
}

TEST_CASE("apply can take a kernel from a module or build one from a source beside the file") {
  const Folder folder;
  folder.write("k.cubin", "elf");
  folder.write("k.cu", "code");
  const auto apply = [&](const std::string& body) {
    const auto file = space::SpaceFile::load(folder.write("space.lua", with_apply(body)), device());
    TestLaunch launch = saxpy_launch();
    LaunchReads reads;
    return file.rules()[0]->apply(Config{{"block", std::int64_t{64}}}, launch.view(), reads);
  };
  const LaunchChange module = apply("launch.module = 'k.cubin' launch.kernel = 'other'");
  CHECK(module.module == std::filesystem::path(folder.path("k.cubin")).lexically_normal());
  CHECK(module.function == "other");
  CHECK(module.source.empty());

  const LaunchChange source = apply(
      "launch.source = './k.cu' launch.options = {'-use_fast_math'}\n"
      "launch.defines = { TILE = config.block, FAST = true, SLOW = false, T = 'float' }");
  CHECK(source.source == folder.path("k.cu"));
  CHECK(source.function == "k");  // its own name, in the other program
  CHECK(source.build_options == std::vector<std::string>{"-DFAST=1", "-DSLOW=0", "-DT=float",
                                                         "-DTILE=64", "-use_fast_math"});
}

TEST_CASE("Keys may be numbers, texts, booleans, several, or a table with names") {
  const auto key = [](const std::string& result) {
    TestLaunch launch = saxpy_launch(1000);
    LaunchReads reads;
    return one_rule(
               "kernel 'k' { params = {'i32','f32','ptr','ptr'}, key = function(launch) return " +
               result + " end }")
        ->key(launch.view(), reads)
        .to_string();
  };
  CHECK(key("5") == "key=5");
  CHECK(key("10 / 2") == "key=5");
  CHECK(key("launch.args[2] / 4") == "key=\"0.5\"");
  CHECK(key("'f16'") == "key=f16");
  CHECK(key("launch.args[3] % 16 == 0") == "key=1");
  CHECK(key("1, 'b'") == "key1=1 key2=b");
  CHECK(key("{ 3, 4 }") == "key1=3 key2=4");
  CHECK(key("{ n = launch.args[1], m = 2 }") == "m=2 n=1000");
  CHECK(key("{ 1,2,3,4,5,6,7,8,9,10 }") ==
        "key1=1 key2=2 key3=3 key4=4 key5=5 key6=6 key7=7 key8=8 key9=9 key10=10");
}

TEST_CASE("Sizes of one bucket are one problem, whatever their grids") {
  const std::string size = "size = function(launch) return launch.args[1] end";
  const auto key_of = [&](const std::string& body, int n) {
    const auto rule = one_rule(
        "kernel \"saxpy_grid_stride\" { params = {'i32', 'f32', 'ptr', "
        "'ptr'}, " +
        body + " }");
    CHECK(rule->keys_by_size());
    LaunchReads reads;
    TestLaunch launch = saxpy_launch(n);
    std::string text = rule->key(launch.view(), reads).to_string();
    CHECK(to_string(reads) == "arg0");
    return text;
  };
  CHECK(key_of(size, 1000) == "size=513-1024");
  CHECK(key_of(size, 600) == "size=513-1024");
  CHECK(key_of(size + ", buckets = {100, 2000}", 600) == "size=101-2000");
  CHECK(key_of(size + ", buckets = 'exact'", 600) == "size=600");
  CHECK(key_of(size + ", key = function(launch) return 'f32' end", 600) == "key=f32 size=513-1024");
  CHECK_FALSE(one_rule(saxpy)->keys_by_size());
}

TEST_CASE("A size that is none is refused") {
  for (const char* body : {"'large'", "-1", "1.5", "nil"}) {
    const auto rule =
        one_rule("kernel \"k\" { size = function() return " + std::string(body) + " end }");
    LaunchReads reads;
    TestLaunch launch = saxpy_launch();
    CHECK_THROWS_WITH(static_cast<void>(rule->key(launch.view(), reads)),
                      Catch::Contains("kernel 'k': size: returned no size"));
  }
}

TEST_CASE("Arguments are read with the declared types") {
  TestLaunch launch;
  launch.argument(std::int8_t{-5}).argument(std::uint8_t{250}).argument(std::int16_t{-300});
  launch.argument(std::uint16_t{60000}).argument(std::int32_t{-70000});
  launch.argument(std::uint32_t{4000000000}).argument(std::int64_t{-5000000000});
  launch.argument(std::uint64_t{5000000000}).argument(0.5F).argument(-0.25);
  launch.argument(std::uint64_t{4096}).bytes("ab\x01\x02");
  const auto rule = one_rule(R"(
    kernel "k" {
      params = { "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f32", "f64", "ptr", "opaque" },
      key = function(launch)
        local a = launch.args
        assert(a[1] == -5 and a[2] == 250 and a[3] == -300 and a[4] == 60000 and a[5] == -70000)
        assert(a[6] == 4000000000 and a[7] == -5000000000 and a[8] == 5000000000)
        assert(a[9] == 0.5 and a[10] == -0.25 and a[11] == 4096)
        assert(a[12] == "ab\1\2" and #a == 12)
        return string.unpack("<I2", a[12], 3)
      end,
    })");
  LaunchReads reads;
  CHECK(rule->key(launch.view(), reads).to_string() == "key1=513 key2=5");
  CHECK(reads.arguments == 0xfff);
}

TEST_CASE("Types default to those of the demangled parameter list") {
  TestLaunch launch = saxpy_launch(7).parameters("int, float, float const*, float*");
  LaunchReads reads;
  const auto rule =
      one_rule("kernel 'k' { key = function(l) return l.args[1], l.args[2], l.args[4] end }");
  CHECK(rule->key(launch.view(), reads).to_string() == "key1=7 key2=2 key3=139637976735744");
  TestLaunch unknown = saxpy_launch(7);
  CHECK(contains(message_of([&] { static_cast<void>(rule->key(unknown.view(), reads)); }),
                 "kernel 'k': key: the type of launch.args[1] is not known; declare all of them"));
}

TEST_CASE("A parameter list that does not fit the arguments is not believed") {
  const auto rule = one_rule("kernel 'k' { key = function(l) return #l.args[1] end }");
  TestLaunch launch;
  launch.bytes("12345678").parameters("Handle");
  LaunchReads reads;
  CHECK(rule->key(launch.view(), reads).to_string() == "key=8");
  TestLaunch misread;  // a type that is called like another
  misread.bytes("123456").parameters("int");
  CHECK(rule->key(misread.view(), reads).to_string() == "key=6");
  TestLaunch fewer;
  fewer.bytes("12345678").parameters("int, int");
  CHECK(contains(message_of([&] { static_cast<void>(rule->key(fewer.view(), reads)); }),
                 "is not known"));
}

TEST_CASE("Rules outlive the file that they came from") {
  std::shared_ptr<KernelRule> rule = one_rule(saxpy);
  TestLaunch launch = saxpy_launch(3);
  LaunchReads reads;
  CHECK(rule->key(launch.view(), reads).to_string() == "key=3");
}

TEST_CASE("Facts of the device can be read by name") {
  const auto rule = one_rule(R"(
    kernel "k" { key = function() return {
      a = device.name, b = device.num_sms, c = device.compute_capability,
      d = device.max_threads_per_block, e = device.max_threads_per_sm, f = device.max_shared_bytes,
      g = device.max_shared_bytes_per_sm, h = device.registers_per_sm, i = device.l2_bytes,
      j = device.simulated } end })");
  TestLaunch launch = saxpy_launch();
  LaunchReads reads;
  CHECK(rule->key(launch.view(), reads).to_string() ==
        "a=\"NVIDIA H200\" b=132 c=90 d=1024 e=2048 f=232448 g=233472 h=65536 i=52428800 j=0");
  CHECK(to_string(reads).empty());
}
