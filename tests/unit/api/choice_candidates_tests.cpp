// Which implementation of a choice may run, and which does.
#include <stdexcept>
#include <string>
#include <vector>

#include <contextune/contextune.hpp>

#include "added.hpp"
#include "catch.hpp"

using contextune::Config;
using contextune::ConfigSpace;
using contextune::Problem;

TEST_CASE_METHOD(AddsToFloats,
                 "What computes something else is never chosen, even if it is the fastest",
                 "[choice]") {
  Add add("with_a_wrong_one", quick());
  add.buffers(memory_of)
      .add("slow", adding(ran, "slow", 256))
      .add("wrong", adding(ran, "wrong", 128, 1.5F))
      .add("middle", adding(ran, "middle", 64));
  add(y, 64);
  CHECK(times(ran, "wrong") == 1);
  CHECK(ran.back() == "middle");
  CHECK(read(y, 64) == all(64, 1.0F));
  CHECK(log_lines({"reason=wrong_result", "implementation=wrong", "with_a_wrong_one"}).size() == 1);
  const auto timings = add.timings({});
  CHECK(of(timings, "wrong").state == contextune_timing_wrong);
  CHECK(of(timings, "middle").is_winner);

  SECTION("unless it is within the tolerance") {
    Add close("within_tolerance", quick({.tolerance = "f32:0.4"}));
    close.buffers(memory_of)
        .add("slow", adding(ran, "slow", 256))
        .add("close", adding(ran, "close", 128, 1.5F));
    close(y, 64);
    CHECK(ran.back() == "close");
  }
}

TEST_CASE("What leaves alone a result that was there before is wrong", "[choice]") {
  const CUdeviceptr y = Program::on().floats(64);
  REQUIRE(cuMemsetD32(y, 7, 64) == CUDA_SUCCESS);  // warm: it was done before
  std::vector<std::string> ran;
  const auto setting = [&](const char* name, std::size_t words) {
    return [&ran, name, words](const Config&, CUdeviceptr at, int) {
      ran.emplace_back(name);
      return words == 0 ? CUDA_SUCCESS : cuMemsetD32Async(at, 7, words, nullptr);
    };
  };
  Add warm("on_warm_memory", quick());
  warm.buffers(memory_of)
      .add("whole", setting("whole", 64))
      .add("half", setting("half", 32))
      .add("nothing", setting("nothing", 0))
      .add("other", setting("other", 64));
  warm(y, 64);
  CHECK(log_lines({"reason=wrong_result", "implementation=half", "on_warm_memory"}).size() == 1);
  CHECK(log_lines({"reason=wrong_result", "implementation=nothing", "on_warm_memory"}).size() == 1);
  CHECK(log_lines({"reason=wrong_result", "on_warm_memory"}).size() == 2);
  CHECK(of(warm.timings({}), "half").state == contextune_timing_wrong);

  SECTION("where the output is read as well, so that nothing may be put there, none is chosen") {
    Add kept("on_kept_memory", quick());
    kept.buffers([&](CUdeviceptr at, int n) {
          contextune::ChoiceMemory both = memory_of(at, n);
          both.others = both.outputs;
          return both;
        })
        .add("whole", setting("whole", 64))
        .add("half", setting("half", 32));
    ran.clear();
    kept(y, 64);
    CHECK(times(ran, "half") == 0);
    CHECK(log_lines({"reason=not_compared", "implementation=half", "on_kept_memory"}).size() == 1);
    CHECK(of(kept.timings({}), "half").state == contextune_timing_unsupported);
  }
}

TEST_CASE_METHOD(AddsToFloats, "What is hardly faster than the default is not chosen", "[choice]") {
  std::string last;
  // One launch in sixty takes half as long, or all do.
  const auto mostly = [&](const char* name, unsigned others, unsigned first) {
    return [&last, name, others, first](const Config&, CUdeviceptr at, int n) {
      last = name;
      CUresult result = Program::on().add(at, n, 1.0F, 1, first);
      for (int i = 1; i < 60 && result == CUDA_SUCCESS; ++i)
        result = Program::on().add(at, n, 1.0F, 1, others);
      return result;
    };
  };
  Add hardly("hardly_faster", quick());
  hardly.buffers(memory_of)
      .add("first", mostly("first", 256, 256))
      .add("hardly", mostly("hardly", 256, 64));
  hardly(y, 64);
  CHECK(last == "first");
  CHECK(of(hardly.timings({}), "hardly").state == contextune_timing_measured);
  Add much("much_faster", quick());
  much.buffers(memory_of)
      .add("first", mostly("first", 256, 256))
      .add("much", mostly("much", 64, 256));
  much(y, 64);
  CHECK(last == "much");
}

TEST_CASE_METHOD(AddsToFloats,
                 "An implementation that fails is not chosen, and the default does the work",
                 "[choice]") {
  Add add("with_failing_ones", quick());
  add.buffers(memory_of)
      .add("slow", adding(ran, "slow", 256))
      .add("throws",
           [](const Config&, CUdeviceptr, int) -> CUresult {
             throw std::runtime_error("no ring here");
           })
      .add("too_large", adding(ran, "too_large", 4096));
  CHECK(add(y, 64) == CUDA_SUCCESS);
  CHECK(ran.back() == "slow");
  CHECK(read(y, 64) == all(64, 1.0F));
  CHECK(log_lines({"reason=launch_failed", "implementation=throws", "no ring here"}).size() == 1);
  CHECK(log_lines({"reason=launch_failed", "implementation=too_large"}).size() == 1);
  CHECK(of(add.timings({}), "throws").state == contextune_timing_failed);
}

TEST_CASE("Each size is a problem, and an implementation says which it can do", "[choice]") {
  const Program& program = Program::on();
  const CUdeviceptr y = program.floats(1U << 16U);
  std::vector<std::string> ran;
  // Fused is fastest where it is small, and slowest where it is large.
  Add add("per_size", quick());
  add.size([](CUdeviceptr, int n) { return static_cast<std::size_t>(n) * sizeof(float); })
      .buffers(memory_of)
      .add_unfused("unfused", adding(ran, "unfused", 64))
      .add_fused("fused",
                 [&](const Config&, CUdeviceptr at, int n) {
                   ran.emplace_back("fused");
                   return Program::on().add(at, n, 1.0F, 1, n <= 256 ? 128 : 256);
                 })
      .add("large_only", adding(ran, "large_only", 128),
           {.supports = [](const Problem& problem) { return problem.bytes >= 65536; }});
  add(y, 256);
  CHECK(ran.back() == "fused");
  add(y, 1024);
  CHECK(ran.back() == "unfused");
  CHECK(times(ran, "large_only") == 0);
  add(y, 1U << 15U);
  CHECK(ran.back() == "large_only");
  CHECK(log_lines({"event=winner", "site=per_size", "bytes=513-1024", "implementation=fused"})
            .size() == 1);
  CHECK(of(add.timings({.bytes = 1024}), "large_only").state == contextune_timing_unsupported);

  SECTION("and the next size of a bucket is the same problem") {
    ran.clear();
    add(y, 200);
    CHECK(ran == std::vector<std::string>{"fused"});
  }
}

TEST_CASE("Fusion limits what may run", "[choice]") {
  const Program& program = Program::on();
  const CUdeviceptr y = program.floats(64);
  const auto winner_with = [&](contextune::Fusion fusion, const char* name) {
    std::vector<std::string> ran;
    Add add(name, quick({.fusion = fusion}));
    add.buffers(memory_of)
        .add_unfused("unfused", adding(ran, "unfused", 128))
        .add_fused("fused", adding(ran, "fused", 256));
    add(y, 64);
    return ran.back();
  };
  CHECK(winner_with(contextune::Fusion::On, "fusion_on") == "fused");
  CHECK(winner_with(contextune::Fusion::Off, "fusion_off") == "unfused");
  CHECK(winner_with(contextune::Fusion::Auto, "fusion_auto") == "unfused");
}

TEST_CASE("A choice may say by name which implementations may run", "[choice]") {
  const CUdeviceptr y = Program::on().floats(64);
  const auto winner_of = [&](const char* name, const char* implementations) {
    std::vector<std::string> ran;
    Add add(name, quick({.implementations = implementations}));
    add.buffers(memory_of)
        .add("plain", adding(ran, "plain", 256))
        .add("fast", adding(ran, "fast", 128))
        .add("middle", adding(ran, "middle", 64));
    add(y, 64);
    return ran.back();
  };
  CHECK(winner_of("all_by_name", "") == "fast");
  CHECK(winner_of("two_by_name", "plain, middle") == "middle");
  CHECK(winner_of("one_by_name", "plain") == "plain");
  CHECK(winner_of("none_by_name", "rign") == "fast");
  CHECK(log_lines({"event=fault", "'rign'", "choice 'none_by_name'", "plain, fast and middle"})
            .size() == 1);
}

TEST_CASE_METHOD(AddsToFloats, "A choice's key may be anything that a key function returns",
                 "[choice]") {
  Add add("keyed_by_list", quick());
  add.key([](CUdeviceptr, int n) {
       return std::tuple(std::vector<int>{n, 8}, std::string("f32"));
     })
      .buffers(memory_of)
      .add("plain", adding(ran, "plain", 256))
      .add("fast", adding(ran, "fast", 128));
  add(y, 64);
  add(y, 32);
  CHECK(log_lines({"event=winner", "keyed_by_list", "key1=[32:8]", "key2=f32"}).size() == 1);
  CHECK(log_lines({"event=winner", "keyed_by_list", "key1=[64:8]", "key2=f32"}).size() == 1);
}

TEST_CASE_METHOD(AddsToFloats, "Configs of an implementation are searched with it", "[choice]") {
  std::vector<std::int64_t> blocks;
  Add add("with_configs", quick());
  add.buffers(memory_of)
      .add("plain", [](const Config&, CUdeviceptr at,
                       int n) { return Program::on().add(at, n, 1.0F, 1, 256); })
      .add("blocked", ConfigSpace().parameter("block", {256, 128, 64}),
           [&](const Config& config, CUdeviceptr at, int n) {
             blocks.push_back(config.get_int("block"));
             return Program::on().add(at, n, 1.0F, 1, static_cast<unsigned>(blocks.back()));
           });
  add(y, 64);
  CHECK(blocks.back() == 128);
  CHECK(log_lines({"event=winner", "site=with_configs", "implementation=blocked", "block=128"})
            .size() == 1);
  CHECK(add.timings({}).size() == 4);
}
