#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include <contextune/error.hpp>

#include "fixture.hpp"

using namespace contextune;

namespace {

std::shared_ptr<TestRule> rule_of(const char* kernel, std::vector<Config> configs) {
  auto rule = std::make_shared<TestRule>(kernel);
  rule->list = std::move(configs);
  return rule;
}

/// Its grid follows the argument n: `per` elements a thread.
std::shared_ptr<TestRule> follows_n() {
  auto rule = rule_of("add", values_of("per", {1, 2}));
  rule->make = [](const Config& config, const LaunchView& view, LaunchReads& reads) {
    reads.arguments |= 1;
    const int n = *static_cast<const int*>(view.arguments[0]);
    LaunchChange change;
    change.block = {{64, 1, 1}};
    const int per = static_cast<int>(config.get_int("per")) * 64;
    change.grid = {{static_cast<unsigned>((n + per - 1) / per), 1, 1}};
    return change;
  };
  return rule;
}

}  // namespace

TEST_CASE("What a rule made of one argument is never used for another", "[site]") {
  Program program(Program::quick(&Options::force, "add=2"));
  const auto rule = follows_n();
  program.runtime().declare(rule);
  Adder small(1000);
  Adder large(100000);
  program.steps(5, [&] {
    small.run(program);
    large.run(program);
  });
  const int applied = rule->applied;
  for (const SeenLaunch& one : take_seen()) {
    CHECK(one.block == 64);
    CHECK((one.grid == 8 || one.grid == 782));
  }
  program.steps(50, [&] {
    small.run(program);
    large.run(program);
  });
  CHECK(rule->applied == applied);  // known arguments ask no more
  std::size_t grids[2] = {0, 0};
  for (const SeenLaunch& one : take_seen()) ++grids[one.grid == 8 ? 0 : 1];
  CHECK(grids[0] == 50);
  CHECK(grids[1] == 50);
}

TEST_CASE("A rule that cannot tell what it reads is asked for every new argument", "[site]") {
  Program program(Program::quick(&Options::force, "add=1"));
  auto rule = rule_of("add", values_of("x", {1}));
  rule->make = [](const Config&, const LaunchView& view, LaunchReads& reads) {
    reads.everything = true;
    LaunchChange change;
    change.grid = {{static_cast<unsigned>(*static_cast<const float*>(view.arguments[1])), 1, 1}};
    return change;
  };
  program.runtime().declare(rule);
  Adder adder(100);
  for (int i = 1; i <= 20; ++i) {
    adder.value = static_cast<float>(i);
    program.steps(1, [&] { adder.run(program, 99); });
  }
  const auto seen = take_seen();
  REQUIRE(seen.size() == 20);
  for (std::size_t i = 1; i < seen.size(); ++i) CHECK(seen[i].grid == i + 1);
}

TEST_CASE("A declared key makes sites of one kernel", "[site]") {
  Program program;
  auto rule = rule_of("add", values_of("block", {64}));
  rule->make_key = [](const LaunchView& view, LaunchReads& reads) {
    reads.arguments |= 1;
    return Key{{"n", std::int64_t{*static_cast<const int*>(view.arguments[0])}}};
  };
  program.runtime().declare(rule);
  Adder small(100);
  Adder large(5000);
  program.steps(4, [&] {
    small.run(program);
    large.run(program);
    large.run(program);
  });
  CHECK(program.lines("site").size() == 2);
  CHECK(program.said("trial", {"n=100\"", "launches=1"}));
  CHECK(program.said("trial", {"n=5000\"", "launches=2"}));
  CHECK(program.said("site", {"grid=8 ", "device=0", "code="}));
}

TEST_CASE("Beyond sixteen grids of one kernel the key holds a bucket", "[site]") {
  Program program;
  program.runtime().declare(rule_of("add", values_of("block", {64})));
  Adder adder(100);
  program.steps(3, [&] {
    for (unsigned grid = 1; grid <= 300; ++grid) adder.run(program, grid);
  });
  // 1 to 16, then buckets up to 32, 64, 128, 256 and 512.
  CHECK(program.lines("site").size() == 21);
  CHECK(program.said("site", {"grid=to:512 "}));
  CHECK(program.said("trial", {"grid=to:64 ", "launches=32"}));
  adder.holds(900);
}

TEST_CASE("A declared config that is the launch as written is the default", "[site]") {
  Program program;
  const auto rule = rule_of("add", values_of("block", {64, 128, 256}));
  program.runtime().declare(rule);
  Adder adder(100);
  program.steps(4, [&] { adder.run(program, 8, 128); });
  CHECK(program.said("site", {"configs=3"}));
  CHECK(program.said("trial", {"pass=0", "config=0", "block=128"}));
  std::vector<unsigned> blocks;
  for (const SeenLaunch& one : take_seen()) blocks.push_back(one.block);
  CHECK(std::vector<unsigned>(blocks.begin(), blocks.begin() + 3) ==
        std::vector<unsigned>{128, 64, 256});
}

TEST_CASE("Only, exclude and NCCL's own kernels", "[site]") {
  const auto sites_with = [](const std::string& only, const std::string& exclude) {
    Program program(Program::quick(&Options::only, only, &Options::exclude, exclude));
    for (const char* kernel : {"add", "add_twin", "ncclDevKernel_Sum"}) {
      program.runtime().declare(rule_of(kernel, values_of("block", {64})));
    }
    Adder add(10);
    Adder twin(10, "_Z8add_twinifPf");
    Adder nccl(10, "ncclDevKernel_Sum");
    program.steps(1, [&] {
      add.run(program);
      twin.run(program);
      nccl.run(program);
    });
    std::set<std::string> names;
    for (const std::string& line : program.lines("site")) {
      const auto at = line.find(" site=") + 6;
      names.insert(line.substr(at, line.find(' ', at) - at));
    }
    if (only == "(") CHECK(program.said("fault", {"only", "(", "ignored"}));
    return names;
  };
  CHECK(sites_with("", "") == std::set<std::string>{"add", "add_twin"});
  CHECK(sites_with("twin", "") == std::set<std::string>{"add_twin"});
  CHECK(sites_with("", "twin") == std::set<std::string>{"add"});
  CHECK(sites_with("(", "") == std::set<std::string>{"add", "add_twin"});
}

TEST_CASE("A pinned site runs its config from the first launch on", "[site]") {
  Program program(Program::quick(&Options::force, "add{block=128}=block=256,nobody=1"));
  program.runtime().declare(rule_of("add", values_of("block", {64, 256})));
  Adder adder(100);
  program.steps(5, [&] {
    adder.run(program, 8, 128);
    adder.run(program, 8, 32);
  });
  const auto seen = take_seen();
  for (std::size_t i = 0; i < seen.size(); i += 2) CHECK(seen[i].block == 256);
  CHECK(seen[1].block == 32);  // another key: searched as usual
  CHECK(seen[3].block == 64);
  CHECK(program.said("winner", {"config=2", "reason=pinned"}));
  program.end();
  CHECK(program.said("fallback", {"reason=force_unmatched", "site=nobody"}));
}

TEST_CASE("A pin on a config that does not exist is reported and does not count", "[site]") {
  Program program(Program::quick(&Options::force, "add=17"));
  program.runtime().declare(rule_of("add", values_of("block", {64})));
  Adder adder(100);
  program.steps(4, [&] { adder.run(program); });
  CHECK(program.said("fallback", {"reason=force_unmatched", "17"}));
  CHECK(program.said("winner", {"site=add "}));
}

TEST_CASE("Names that mean nothing that was launched are reported at the end", "[site]") {
  Program program(Program::quick(&Options::exclude, "nothing"));
  for (const char* name : {"ad", "_Z3addifPf", "void add(int, float, float*)"})
    program.runtime().declare(rule_of(name, values_of("block", {64})));
  Adder adder(100);
  program.steps(2, [&] { adder.run(program); });
  program.end();
  CHECK(program.lines("fallback").size() == 2);
  CHECK(program.said("fallback", {"reason=name_unmatched", "site=ad ", "did you mean 'add'?"}));
  CHECK(program.said("fallback", {"reason=name_unmatched", "--exclude", "nothing"}));
}

TEST_CASE("An expression that leaves no kernel is reported with what was launched", "[site]") {
  Program program(Program::quick(&Options::only, "gemm"));
  program.runtime().declare(rule_of("add", values_of("block", {64})));
  Adder adder(100);
  program.steps(2, [&] { adder.run(program); });
  program.end();
  CHECK(program.lines("fallback").size() == 2);
  CHECK(program.said("fallback", {"reason=excluded", "site=add ", "--only finds nothing"}));
  CHECK(program.said("fallback", {"reason=name_unmatched", "--only", "gemm", "known are add"}));
}

TEST_CASE("A space file's choice that the program does not have is reported", "[site]") {
  const std::string file =
      std::filesystem::temp_directory_path() / ("unmatched." + std::to_string(getpid()) + ".lua");
  std::ofstream(file) << "choice 'layer_end' { pin = 'a' }\nchoice 'all_reduc' { pin = 'a' }\n";
  Program program(Program::quick(&Options::space, file));
  std::filesystem::remove(file);
  CHECK(program.runtime().choice_rule("layer_end") != nullptr);
  CHECK(program.runtime().choice_rule("all_reduce") == nullptr);
  program.end();
  CHECK_FALSE(program.said("fallback", {"site=layer_end"}));
  CHECK(program.said("fallback", {"reason=name_unmatched", "site=all_reduc ", "no choice called",
                                  "did you mean 'all_reduce'?"}));
}

TEST_CASE("No name is reported where nothing was launched in a region", "[site]") {
  Program program(Program::quick(&Options::only, "gemm"));
  program.runtime().declare(rule_of("add", values_of("block", {64})));
  Adder adder(100);
  adder.run(program);
  program.steps(1, [] {});
  program.end();
  CHECK_FALSE(program.said("fallback", {"reason=name_unmatched"}));
}

TEST_CASE("A rule that may read everything is asked once for the same arguments", "[site]") {
  Program program(Program::quick(&Options::force, "add=1,other=1"));
  std::vector<std::shared_ptr<TestRule>> rules;
  for (const char* kernel : {"add", "other"}) {
    rules.push_back(rule_of(kernel, values_of("block", {64})));
    rules.back()->make = [](const Config& config, const LaunchView&, LaunchReads& reads) {
      reads.everything = true;
      return TestRule::by_name(config);
    };
    program.runtime().declare(rules.back());
  }
  const Simulation& simulation = Simulation::get();
  Adder adder(100);
  // A second module brings other handles of the same kernels to the sites of the first.
  for (CUmodule module : {simulation.module, simulation.load()}) {
    adder.function = simulation.function(module, "_Z3addifPf");
    const CUfunction other = simulation.function(module, "_Z5otherv");
    for (int i = 0; i < 20; ++i) {
      program.steps(1, [&] {
        adder.run(program);
        program.launch(other, 1, 32, {});
      });
    }
  }
  for (const SeenLaunch& one : take_seen()) CHECK(one.block == 64);
  for (const auto& rule : rules) CHECK(rule->applied <= 6);
  adder.holds(40);
}

TEST_CASE("Another function of the same module may be a config", "[site]") {
  Options options = Program::quick();
  Program program(options);
  auto rule = rule_of("add", {Config{{"function", std::string("add_twin")}},
                              Config{{"function", std::string("other")}},
                              Config{{"function", std::string("nothing")}}});
  program.runtime().declare(rule);
  Adder adder(100);
  program.steps(8, [&] { adder.run(program); });
  adder.holds(8);
  std::set<std::string> kernels;
  for (const SeenLaunch& one : take_seen()) kernels.insert(one.kernel);
  CHECK(kernels == std::set<std::string>{"add", "add_twin"});
  CHECK(program.said("fallback", {"reason=build_failed", "does not take the arguments of add"}));
  CHECK(
      program.said("fallback", {"reason=build_failed", "there is no kernel nothing", "add_twin"}));
}

TEST_CASE("A config that makes no launch costs that config, and not the kernel", "[site]") {
  Program program;
  auto rule = rule_of("add", values_of("block", {2048, 64, 32}));
  rule->make = [](const Config& config, const LaunchView&, LaunchReads&) {
    const auto block = static_cast<std::uint32_t>(config.get_int("block"));
    if (block > 1024) throw ConfigError("space.lua:3: launch.block.x = 2048 is too many");
    LaunchChange change;
    change.block = {block, 1, 1};
    return change;
  };
  program.runtime().declare(rule);
  Adder adder(100);
  program.steps(8, [&] { adder.run(program); });
  adder.holds(8);
  std::set<std::uint32_t> blocks;
  for (const SeenLaunch& one : take_seen()) blocks.insert(one.block);
  CHECK(blocks == std::set<std::uint32_t>{128, 64, 32});
  CHECK(program.said("fallback", {"reason=build_failed", "block=2048", "space.lua:3"}));
  CHECK(program.lines("site").size() == 1);
}

TEST_CASE(
    "A rule that throws, or whose every config makes no launch, leaves its kernel as written, and "
    "is named",
    "[site]") {
  const bool is_every_config = GENERATE(true, false);
  Program program;
  auto rule = rule_of("add", values_of("block", {64, 32}));
  rule->make = [=](const Config&, const LaunchView&, LaunchReads&) -> LaunchChange {
    const char* const text = "space.lua:12: kernel 'add': apply: boom";
    if (is_every_config) throw ConfigError(text);
    throw Error(text);
  };
  program.runtime().declare(rule);
  Adder adder(100);
  program.steps(5, [&] { adder.run(program); });
  for (const SeenLaunch& one : take_seen()) CHECK(one.block == 128);
  CHECK(program.said("fallback", {"reason=rule_error", "space.lua:12"}));
  CHECK(program.lines("site").empty());
  adder.holds(5);
}

TEST_CASE("Sites beyond max_sites run as written", "[site]") {
  Program program(Program::quick(&Options::max_sites, 3));
  program.runtime().declare(rule_of("add", values_of("grid", {77})));
  Adder adder(100);
  program.steps(6, [&] {
    for (unsigned block = 32; block <= 256; block += 32) adder.run(program, 8, block);
  });
  CHECK(program.lines("site").size() == 3);
  CHECK(program.said("fallback", {"reason=too_many_sites"}));
  for (const SeenLaunch& one : take_seen()) {
    if (one.block > 96) CHECK(one.grid == 8);
  }
  adder.holds(48);
}

TEST_CASE("A site whose kernels come from files is tuned once they are loaded", "[site]") {
  const std::string folder = std::filesystem::temp_directory_path().string();
  const std::string image = folder + "/contextune_site_" + std::to_string(getpid()) + ".image";
  std::ofstream(image) << "simcuda image 1\nkernel _Z8add_twinifPf\n";
  Program program;
  auto rule = rule_of("add", values_of("file", {1, 2}));
  rule->make = [&](const Config& config, const LaunchView&, LaunchReads&) {
    LaunchChange change;
    change.module = config.get_int("file") == 1 ? image : image + ".missing";
    change.function = "add_twin";
    change.block = {{1024, 1, 1}};
    return change;
  };
  program.runtime().declare(rule);
  Adder adder(1 << 16);
  int steps = 0;
  // How soon the loading thread runs is not ours to say.
  while (!program.said("winner", {"site=add "}) && steps < 100000) {
    program.steps(1, [&] { adder.run(program, 1, 32); });
    ++steps;
  }
  std::filesystem::remove(image);
  CHECK(program.said("fallback", {"reason=build_failed", ".missing"}));
  CHECK(program.said("winner", {"site=add ", "config=1 "}));
  const auto before = take_seen();
  CHECK(before.front().kernel == "add");  // nothing waited for the file
  program.steps(1, [&] { adder.run(program, 1, 32); });
  const auto seen = take_seen();
  REQUIRE(seen.size() == 1);
  CHECK(seen.front().kernel == "add_twin");
  adder.holds(static_cast<float>(steps + 1));
}
