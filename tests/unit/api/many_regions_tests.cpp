// A process has 1024 regions; a program may ask for more.
#include <string>
#include <vector>

#include <contextune/contextune.h>
#include <contextune/contextune.hpp>

#include "added.hpp"
#include "catch.hpp"

namespace {

std::size_t faults() {
  return log_lines({"event=fault"}).size();
}

void use_up_regions() {
  static bool used = false;
  if (used) return;
  used = true;
  Program::on();
  for (int i = 0; i < 1025; ++i) {
    CONTEXTUAL_AUTOTUNE("used_up_" + std::to_string(i), short_table()) {}
  }
}

}  // namespace

TEST_CASE("A region too many runs its body once at each entry, and that is said once", "[region]") {
  use_up_regions();
  int runs = 0;
  for (int entry = 0; entry < 5; ++entry) {
    for (const char* name : {"too_many_a", "too_many_b"}) {
      CONTEXTUAL_AUTOTUNE(name, short_table()) {
        ++runs;
      }
    }
  }
  CHECK(runs == 10);
  CHECK(faults() == 0);
  CHECK(log_lines({"event=fallback", "reason=too_many_sites", "1024 regions"}).size() == 1);
}

TEST_CASE("A key of a choice that can have no region runs the default for good", "[choice]") {
  use_up_regions();
  const CUdeviceptr y = Program::on().floats(64);
  std::vector<std::string> ran;
  Add add("too_many_keys", quick());
  add.buffers(memory_of)
      .add("slow", adding(ran, "slow", 256))
      .add("fast", adding(ran, "fast", 128));
  add(y, 64);
  CHECK(read(y, 64) == all(64, 1.0F));
  ran.clear();
  for (int call = 0; call < 5; ++call) add(y, 64);
  CHECK(ran == std::vector<std::string>(5, "slow"));
  CHECK(read(y, 64) == all(64, 6.0F));
  CHECK(faults() == 0);
  CHECK(log_lines({"event=fallback", "reason=too_many_sites", "region=too_many_keys"}).size() == 1);
}

TEST_CASE("A choice whose key can have no region asks for nothing any more", "[choice]") {
  use_up_regions();
  contextune_choice_options options{};
  options.size = sizeof options;
  options.repeatable = 1;
  contextune_choice* const choice = contextune_choice_create("asks_no_more", &options);
  REQUIRE(choice != nullptr);
  for (const char* name : {"slow", "fast"}) {
    contextune_implementation one{};
    one.size = sizeof one;
    one.name = name;
    REQUIRE(contextune_choice_add(choice, &one) == 0);
  }
  contextune_problem problem{};
  problem.size = sizeof problem;
  problem.bytes = 64;
  const uint32_t number = contextune_choice_problem(choice, &problem);
  int calls = 0;
  contextune_choice_run run{};
  run.size = sizeof run;
  run.user = &calls;
  run.run = [](void* user, size_t, size_t) { return ++*static_cast<int*>(user), 0; };
  CHECK(contextune_choice_wants(choice, number) == contextune_want_alone);
  CHECK(contextune_choice_call(choice, number, &run, nullptr) == 0);
  CHECK(contextune_choice_wants(choice, number) == contextune_want_call);
}
