#include <thread>

#include "catch.hpp"
#include "space_fixture.hpp"

using namespace contextune;
using namespace contextune::space::test;

namespace {

std::string in_apply(const std::string& body, TestLaunch launch = saxpy_launch()) {
  return apply_error(with_apply(body), std::move(launch));
}

/// with_apply puts the body on line 5.
const std::string place = "FILE:5: kernel 'k': apply: ";

std::string in_key(const std::string& body) {
  return key_error("kernel 'k' { key = function(launch) " + body + " end }");
}

std::string in_prune(const std::string& body) {
  return configs_error(
      "kernel 'k' { space = { a = {1} }, apply = function() end,\nprune = "
      "function(config, launch) " +
      body + " end }");
}

}  // namespace

TEST_CASE("Writes that cannot be launched are refused where they are written") {
  CHECK(in_apply("launch.block.x = 0") ==
        place + "launch.block.x = 0 is not within 1 to 1024; rule such a config out with prune");
  CHECK(contains(in_apply("launch.block.z = 65"), "launch.block.z = 65 is not within 1 to 64"));
  CHECK(contains(in_apply("launch.grid.y = 65536"), "launch.grid.y = 65536 is not within"));
  CHECK(contains(in_apply("launch.grid.x = 2147483648"), "launch.grid.x = 2147483648 is not"));
  CHECK(contains(in_apply("launch.grid.x = -1"), "launch.grid.x = -1 is not within"));
  CHECK(in_apply("launch.grid.x = 7 / 2") ==
        place + "launch.grid.x = 3.5 is not a whole number; use a // b or ceil_div(a, b)");
  CHECK(contains(in_apply("launch.grid.x = 1e300"), "is not a whole number"));
  CHECK(contains(in_apply("launch.grid.x = 0/0"), "is not a whole number"));
  CHECK(in_apply("launch.grid.x = '5'") ==
        place + "launch.grid.x was given a string; give it a whole number");
  CHECK(contains(in_apply("launch.grid = nil"), "launch.grid was given a nil; give it a number"));
  CHECK(contains(in_apply("launch.grid = {1,2,3,4}"), "launch.grid has three dimensions, not 4"));
  CHECK(contains(in_apply("launch.grid = {w=1}"), "launch.grid has no field 'w'"));
  CHECK(contains(in_apply("launch.shared_bytes = -1"), "launch.shared_bytes = -1 is not within"));
  CHECK(in_apply("\n\nlaunch.block = {1024, 2}") ==
        "FILE:7: kernel 'k': apply: launch.block = 1024 x 2 x 1 is more than the 1024 threads of a "
        "block; rule such a config out with prune");
  CHECK(contains(in_apply("launch.shared_bytes = 232449"),
                 "launch.shared_bytes = 232449 is more than the 232448 bytes of a block"));
  CHECK(contains(in_apply("launch.cluster = {4, 4, 2}"), "is more than 16 blocks"));
  CHECK(contains(in_apply("launch.cluster = 3"),
                 "the grid (1024 x 1 x 1) is no multiple of launch.cluster = 3 x 1 x 1"));
}

TEST_CASE("A block is judged with the dimensions that the program wrote") {
  TestLaunch launch = saxpy_launch();
  launch.block(256, 4);
  CHECK(contains(in_apply("launch.block.x = 512", launch),
                 "launch.block = 512 x 4 x 1 is more than the 1024 threads"));
}

TEST_CASE("Unknown fields are named with what was meant") {
  CHECK(in_apply("launch.blok.x = 1") ==
        place + "launch has no field 'blok'; did you mean 'block'?");
  CHECK(in_apply("launch.blok = 1") == place + "launch has no field 'blok'; did you mean 'block'?");
  CHECK(in_apply("launch.block.w = 1") ==
        place + "launch.block has no field 'w'; did you mean 'x'?");
  CHECK(contains(in_apply("local x = launch.block[1]"),
                 "launch.block has named fields, so it cannot be indexed with a number"));
  CHECK(in_apply("local x = config.blok") ==
        place + "config has no field 'blok'; did you mean 'block'?");
  CHECK(contains(in_apply("local x = device.sms"), "device has no field 'sms'"));
  CHECK(in_apply("local x = device.num_sm") ==
        place + "device has no field 'num_sm'; did you mean 'num_sms'?");
  CHECK(contains(in_apply("config.block = 5"), "config cannot be written"));
  CHECK(contains(in_apply("device.num_sms = 5"), "device cannot be written"));
  CHECK(contains(in_apply("launch.args[1] = 5"), "launch.args cannot be written"));
  CHECK(contains(in_apply("launch.args = 5"), "launch.args cannot be written"));
  CHECK(contains(in_apply("local x = launch.args.n"), "launch.args is a list"));
  CHECK(contains(in_apply("local x = launch.args[0]"),
                 "launch.args[0] does not exist; the kernel "
                 "has 4 arguments"));
  CHECK(contains(in_apply("local x = launch.args[5]"), "launch.args[5] does not exist"));
  CHECK(contains(in_apply("local x = launch.defines"), "launch.defines cannot be read"));
}

TEST_CASE("Other programs are refused with what is missing") {
  CHECK(contains(in_apply("launch.module = 'none.cubin'"),
                 "launch.module = \"none.cubin\": there is no file "));
  CHECK(contains(in_apply("launch.source = '/'"), "there is no file"));
  CHECK(contains(in_apply("launch.source = 'a' launch.module = 'b'"), "are both written"));
  CHECK(contains(in_apply("launch.defines = { A = 1 }"), "launch.source, which is not written"));
  CHECK(contains(in_apply("launch.defines = 5"), "launch.defines was given a number"));
  CHECK(contains(in_apply("launch.defines = { ['A B'] = 1 }"), "wants macro names as keys"));
  CHECK(contains(in_apply("launch.defines = { A = {} }"), "launch.defines.A was given a table"));
  CHECK(contains(in_apply("launch.options = { 'x' }"), "'x' is no option"));
  CHECK(contains(in_apply("launch.options = 'x'"), "launch.options was given a string"));
  CHECK(contains(in_apply("launch.kernel = ''"), "launch.kernel was given a text that is empty"));
  CHECK(contains(in_apply("launch.kernel = 'a\\0b'"), "holds a NUL byte"));
  CHECK(contains(in_apply("launch.kernel = 5"), "launch.kernel was given a number"));
}

TEST_CASE("Lua's own errors name file, line, kernel and function") {
  CHECK(in_apply("local n\nlocal x = n + 1") ==
        "FILE:6: kernel 'k': apply: attempt to perform arithmetic on a nil value (local 'n'); "
        "correct this line");
  CHECK(in_apply("error('no config for this')") == place + "no config for this; correct this line");
  CHECK(in_apply("error({})") == place + "raised a table as an error; give error() a text");
  CHECK(in_apply("error()") == place + "raised a nil as an error; give error() a text");
  CHECK(in_apply("assert(false)") == place + "assertion failed!; correct this line");
  CHECK(contains(in_apply("error('a\\nb\\27[31m')"), "a b [31m"));
  CHECK(contains(in_apply("local function f(n) return 1 + f(n + 1) end f(1)"), "FILE:5: "));
  CHECK(in_apply("error(('x'):rep(100000))").size() < 1000);
  CHECK(contains(in_apply("n = 5"), "a function assigns the global 'n'"));
  CHECK(contains(in_apply("kernel 'x' {}"), "only while the file is loaded"));
}

TEST_CASE("Wrong results of key are named") {
  const std::string start = "FILE:1: kernel 'k': key: ";
  CHECK(in_key("") == start + "returned nothing; return what makes two launches the same problem");
  CHECK(in_key("return nil") ==
        start + "returned a nil; return a number, a text, or a table of these");
  CHECK(contains(in_key("return function() end"), "returned a function"));
  CHECK(contains(in_key("return {}"), "returned an empty table"));
  CHECK(contains(in_key("return { {} }"), "returned a table; return a number"));
  CHECK(contains(in_key("return { ['a b'] = 1 }"), "with names that are not made of"));
  CHECK(contains(in_key("return 0/0"), "infinite or none"));
  CHECK(contains(in_key("return 'a\\1'"), "control characters"));
  CHECK(contains(in_key("return ('x'):rep(1000)"), "too long"));
  CHECK(contains(in_key("return table.unpack({1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17})"),
                 "more than 16 values"));
  CHECK(contains(in_key("local t = {} for i = 1, 200 do t[i] = i end return table.unpack(t)"),
                 "too many values"));
  CHECK(contains(in_key("launch.block.x = 5"), "launch can be written only in apply"));
  CHECK(contains(in_key("return launch.args[1]"), "the type of launch.args[1] is not known"));
}

TEST_CASE("Wrong results of prune are named") {
  CHECK(in_prune("") ==
        "FILE:2: kernel 'k': prune: returned a nil; return true to keep the config, "
        "false to drop it");
  CHECK(contains(in_prune("return 1"), "returned a number; return true"));
  CHECK(contains(in_prune("launch.grid = 1 return true"), "only in apply"));
}

TEST_CASE("Declared types that do not fit the arguments are named") {
  CHECK(
      key_error("kernel 'k' { params = {'i32'}, key = function() return 1 end }") ==
      "FILE:1: kernel 'k': params has 1 entries, but the kernel has 4 arguments; name the type of "
      "each");
  CHECK(key_error("kernel 'k' { params = {'i32', 'f64', 'ptr', 'ptr'}, key = function() return 1 "
                  "end }") ==
        "FILE:1: kernel 'k': params[2] = \"f64\" has 8 bytes, but the argument has 4; correct the "
        "type");
  CHECK(key_error("kernel 'k' { params = {'opaque', 'opaque', 'u64', 'i64'}, key = function() "
                  "return 1 end }")
            .empty());
}

TEST_CASE("Arguments that the driver does not tell are named") {
  TestLaunch launch;
  launch.grid(4);
  CHECK(contains(in_apply("local x = launch.args[1]", launch),
                 "the arguments of this launch cannot be read"));
}

TEST_CASE("Objects that a script keeps show the call that runs, never an old one") {
  const auto rule = one_rule(R"(
    local kept_grid, kept_config
    kernel "k" {
      space = { a = {1} },
      key = function(launch)
        if kept_config then return kept_config.a end
        kept_grid = launch.grid
        return 1
      end,
      apply = function(config, launch)
        kept_config = config
        launch.block = kept_grid.x
      end,
    })");
  LaunchReads reads;
  TestLaunch first = saxpy_launch();
  static_cast<void>(rule->key(first.grid(100).view(), reads));
  TestLaunch second = saxpy_launch();
  const LaunchChange change =
      rule->apply(Config{{"a", std::int64_t{1}}}, second.grid(200).view(), reads);
  CHECK(change.block == std::array<std::uint32_t, 3>{200, 1, 1});
  CHECK(to_string(reads) == "grid");
  CHECK(contains(message_of([&] { static_cast<void>(rule->key(first.view(), reads)); }),
                 "kernel 'k': key: config can be used only while prune or apply runs"));
  CHECK(contains(load_error("\nlocal y = launch"), "FILE:2: 'launch' has no value here"));
}

TEST_CASE("A rule works on after an error") {
  const auto rule = one_rule(
      "kernel 'k' { space = { a = {1, 2} }, apply = function(config, launch)\n"
      "if config.a == 1 then launch.grid = 5 error('x') end end }");
  TestLaunch launch = saxpy_launch();
  for (int i = 0; i < 100; ++i) {
    LaunchReads reads;
    CHECK_THROWS_AS(rule->apply(Config{{"a", std::int64_t{1}}}, launch.view(), reads), Error);
    CHECK(rule->apply(Config{{"a", std::int64_t{2}}}, launch.view(), reads) == LaunchChange{});
  }
}

TEST_CASE("Rules of one file may be called from several threads") {
  const Folder folder;
  const auto file =
      space::SpaceFile::load(folder.write("space.lua",
                                          "kernel 'a' { key = function(l) return l.grid.x end }\n"
                                          "kernel 'b' { key = function(l) return l.block.x end }"),
                             device());
  std::array<int, 2> wrong{};
  std::array<std::thread, 2> threads;
  for (std::size_t t = 0; t < threads.size(); ++t) {
    threads[t] = std::thread([&, t] {
      TestLaunch launch;
      launch.grid(7).block(32);
      for (int i = 0; i < 5000; ++i) {
        LaunchReads reads;
        const std::string key = file.rules()[t]->key(launch.view(), reads).to_string();
        if (key != (t == 0 ? "key=7" : "key=32") || reads.grid == reads.block) ++wrong[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::array<int, 2>{});
}
