// Which sizes are one problem of a choice, and what it does at sizes that were not measured.
#include <string>
#include <vector>

#include <contextune/contextune.hpp>

#include "added.hpp"
#include "catch.hpp"

using contextune::Buckets;
using contextune::ChoiceOptions;
using contextune::Config;
using contextune::Problem;
using contextune::UnseenSize;

namespace {

/// Of floats, with implementations of which each is the fastest at some sizes.
struct Sized {
  explicit Sized(const std::string& name, ChoiceOptions options = {})
      : add(name, quick(std::move(options))) {
    add.size([](CUdeviceptr, int n) { return static_cast<std::size_t>(n) * sizeof(float); })
        .buffers(memory_of)
        .add("plain", adding(ran, "plain", 256))
        .add("small",
             [this](const Config&, CUdeviceptr at, int n) {
               ran.emplace_back("small");
               return Program::on().add(at, n, n == wrong_at ? 2.0F : 1.0F, 1,
                                        n <= 300 ? 128 : 256);
             })
        .add("middle", adding(ran, "middle", 64));
  }
  /// What is run in the end at that many floats.
  std::string at(int n) {
    ran.clear();
    const CUdeviceptr y = Program::on().floats(static_cast<std::size_t>(n));
    add(y, n);
    REQUIRE(read(y, n) == all(n, 1.0F));
    return ran.back();
  }
  int wrong_at = 0;  ///< so many floats
  std::vector<std::string> ran;
  Add add;
};

}  // namespace

TEST_CASE("Edges say which sizes are one problem of a choice", "[choice_sizes]") {
  Program::on();
  Sized sized("with_edges", {.buckets = Buckets::edges({1200, 65536})});
  CHECK(sized.at(300) == "small");
  CHECK(sized.at(2) == "small");
  CHECK(sized.ran.size() == 1);
  CHECK(sized.at(301) == "middle");
  CHECK(sized.at(16384) == "middle");
  CHECK(sized.ran.size() == 1);
  CHECK(sized.at(16385) == "middle");
  CHECK(sized.ran.size() > 1);
  for (const char* bytes : {"bytes=0-1200", "bytes=1201-65536", "bytes=over:65536"})
    CHECK(log_lines({"event=winner", "site=with_edges", bytes}).size() == 1);
}

TEST_CASE("With exact buckets each size of a choice is a problem", "[choice_sizes]") {
  Program::on();
  Sized sized("with_exact_sizes", {.buckets = Buckets::exact()});
  CHECK(sized.at(300) == "small");
  CHECK(sized.at(301) == "middle");
  CHECK(sized.at(300) == "small");
  CHECK(sized.ran.size() == 1);
  CHECK(log_lines({"event=winner", "site=with_exact_sizes", "bytes=1200\"", "implementation=small"})
            .size() == 1);
}

TEST_CASE("An implementation is asked about the ends of a bucket", "[choice_sizes]") {
  const Program& program = Program::on();
  std::vector<std::size_t> asked;
  std::vector<std::string> ran;
  Add add("asked", quick({.buckets = Buckets::parse("1K,64K")}));
  add.size([](CUdeviceptr, int n) { return static_cast<std::size_t>(n) * sizeof(float); })
      .buffers(memory_of)
      .add("plain", adding(ran, "plain", 256))
      .add("bounded", adding(ran, "bounded", 128), {.supports = [&](const Problem& problem) {
             asked.push_back(problem.bytes);
             return problem.bytes <= std::size_t{1} << 30U;
           }});
  const CUdeviceptr y = program.floats(1U << 15U);
  add(y, 1 << 10);
  CHECK(asked == std::vector<std::size_t>{1025, 65536});
  CHECK(ran.back() == "bounded");
  asked.clear();
  add(y, 1 << 15);
  CHECK(asked == std::vector<std::size_t>{65537, ~std::size_t{0}});
  CHECK(ran.back() == "plain");
}

TEST_CASE("A choice runs at other sizes what the nearest measured one runs", "[choice_sizes]") {
  Program::on();
  static int number = 0;
  const std::string name = "nearest_" + std::to_string(++number);
  Sized sized(name, {.unseen = UnseenSize::Nearest});
  CHECK(sized.at(256) == "small");
  const auto searched = sized.ran.size();
  CHECK(searched > 4);

  SECTION("after it was compared with the default once") {
    CHECK(sized.at(512) == "small");
    // Each on four contents, and the call.
    CHECK(times(sized.ran, "plain") == 4);
    CHECK(times(sized.ran, "small") == 5);
    CHECK(sized.ran.size() == 9);
    CHECK(sized.at(400) == "small");
    CHECK(sized.ran.size() == 1);
    CHECK(log_lines({"event=winner", "site=" + name + " ", "bytes=1025-2048"}).empty());
  }
  SECTION("unless it is wrong there: then it is searched") {
    sized.wrong_at = 1024;
    CHECK(sized.at(1024) == "middle");
    CHECK(sized.ran.size() > 4);
    CHECK(sized.at(1024) == "middle");
    CHECK(sized.ran.size() == 1);
  }
  SECTION("or too far away") {
    CHECK(sized.at(2048) == "middle");
    CHECK(sized.ran.size() > 4);
  }
  SECTION("until it is measured itself") {
    CHECK(sized.at(512) == "small");
    CONTEXTUAL_AUTOTUNE("choice_of_other_size", short_table()) {
      sized.at(500);
    }
    CHECK(sized.at(512) == "middle");
    CHECK(sized.ran.size() == 1);
  }
}

TEST_CASE("A nearer size that is measured later takes the place of another", "[choice_sizes]") {
  Program::on();
  Sized sized("nearer", {.unseen = UnseenSize::Nearest, .nearest_within = 4});
  CHECK(sized.at(128) == "small");
  CHECK(sized.at(512) == "small");    // as 128
  CHECK(sized.at(1024) == "middle");  // searched
  CHECK(sized.at(512) == "middle");
  CHECK(sized.at(500) == "middle");
  CHECK(sized.ran.size() == 1);
}

TEST_CASE("What was borrowed and cannot be run is replaced by the default", "[choice_sizes]") {
  const Program& program = Program::on();
  std::vector<std::string> ran;
  bool fails = false;
  Add add("borrowed_fails", quick({.unseen = UnseenSize::Nearest}));
  add.size([](CUdeviceptr, int n) { return static_cast<std::size_t>(n) * sizeof(float); })
      .buffers(memory_of)
      .add("plain", adding(ran, "plain", 256))
      .add("fast", [&](const Config&, CUdeviceptr at, int n) {
        ran.emplace_back("fast");
        return fails ? CUDA_ERROR_INVALID_VALUE : Program::on().add(at, n, 1.0F, 1, 128);
      });
  const CUdeviceptr y = program.floats(512);
  add(y, 256);
  add(y, 512);
  CHECK(ran.back() == "fast");
  fails = true;
  ran.clear();
  CHECK(add(y, 512) == CUDA_SUCCESS);
  CHECK(ran == std::vector<std::string>{"fast", "plain"});
  CHECK(add(y, 512) == CUDA_SUCCESS);
  CHECK(ran.size() == 3);
  CHECK(ran.back() == "plain");
  CHECK(log_lines({"reason=winner_failed", "borrowed_fails"}).size() == 1);
}

TEST_CASE("A choice runs its default at sizes that were not measured, if told so",
          "[choice_sizes]") {
  const Program& program = Program::on();
  Sized sized("default_elsewhere", {.unseen = UnseenSize::Default});
  const CUdeviceptr own = program.floats(256);
  sized.add.make_inputs([&](const Problem&) { return std::tuple<CUdeviceptr, int>(own, 256); });
  CHECK(sized.at(256) == "plain");
  CHECK(sized.ran.size() == 1);
  CHECK(sized.add.timings({.bytes = 1024}).size() == 3);
  CHECK(sized.at(256) == "small");
  CHECK(sized.at(512) == "plain");
  CHECK(sized.ran.size() == 1);
}

TEST_CASE("The hints of a choice are measured before its first call outside of a region",
          "[choice_sizes]") {
  const Program& program = Program::on();
  const CUdeviceptr own = program.floats(4096);
  Sized sized("hinted_choice", {.hints = {1024, 16384}, .unseen = UnseenSize::Default});
  sized.add.make_inputs([&](const Problem& problem) {
    return std::tuple<CUdeviceptr, int>(own, static_cast<int>(problem.bytes / sizeof(float)));
  });
  const auto winners = [] { return log_lines({"event=winner", "site=hinted_choice"}).size(); };
  CONTEXTUAL_AUTOTUNE("choice_before_its_hints", short_table()) {
    sized.at(64);
  }
  const auto in_region = winners();
  CHECK(sized.at(4096) == "middle");  // by its hint
  CHECK(winners() == in_region + 2);
  CHECK(sized.at(256) == "small");
  CHECK(sized.at(512) == "plain");  // it was not hinted
  CHECK(sized.ran.size() == 1);
  CHECK(winners() == in_region + 2);
}

TEST_CASE("A choice without inputs cannot have hints", "[choice_sizes]") {
  const Program& program = Program::on();
  Sized sized("choice_without_inputs", {.hints = {1024}});
  CHECK_THROWS_WITH(sized.add(program.floats(256), 256),
                    Catch::Contains("choice_without_inputs") && Catch::Contains("make_inputs()"));
}
