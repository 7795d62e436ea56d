// Options of choices that an operator sets, here CONTEXTUNE_SELECT=immediate, CONTEXTUNE_FUSION=on
// and CONTEXTUNE_IMPLEMENTATIONS=fused,unfused,small, go before what the code says.
#include <string>
#include <vector>

#include <contextune/contextune.hpp>

#include "added.hpp"
#include "catch.hpp"

TEST_CASE_METHOD(AddsToFloats, "An operator has fused implementations run", "[choice_options]") {
  Add add("fusion_by_option", quick({.fusion = contextune::Fusion::Off}));
  add.buffers(memory_of)
      .add_unfused("unfused", adding(ran, "unfused", 128))
      .add_fused("fused", adding(ran, "fused", 256));
  add(y, 64);
  CHECK(ran.back() == "fused");
}

TEST_CASE_METHOD(AddsToFloats, "An operator names the implementations that may run",
                 "[choice_options]") {
  const auto winner_of = [&](const char* name, const char* third) {
    Add add(name, quick({.implementations = "large"}));
    add.buffers(memory_of)
        .add("plain", adding(ran, "plain", 256))
        .add("large", adding(ran, "large", 128))
        .add(third, adding(ran, third, 64));
    add(y, 64);
    return ran.back();
  };
  CHECK(winner_of("limited_by_option", "small") == "small");
  CHECK(times(ran, "large") == 0);

  // A choice that has none of them is not limited.
  CHECK(winner_of("not_limited_by_option", "middle") == "large");
  CHECK(log_lines({"event=fault", "choice 'not_limited_by_option'", "plain, large and middle"})
            .size() == 1);
}

TEST_CASE_METHOD(AddsToFloats, "An operator has choices searched alone, in a region as well",
                 "[choice_options]") {
  Add add("alone_by_option", quick({.select = contextune::Select::Deferred}));
  add.buffers(memory_of)
      .add("fused", adding(ran, "fused", 256))
      .add("small", adding(ran, "small", 64));
  CONTEXTUAL_AUTOTUNE("around_by_option") add(y, 64);
  CHECK(ran.back() == "small");
  CHECK(log_lines({"event=winner", "site=alone_by_option", "region=around_by_option"}).empty());
  CHECK(log_lines({"event=winner", "site=alone_by_option", "implementation=small"}).size() == 1);
}
