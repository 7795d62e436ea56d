#include "core/submission/found_region.hpp"
#include "core/submission/period_finder.hpp"

#include <limits>
#include <string>
#include <vector>

#include "catch.hpp"

using contextune::FoundRegion;
using contextune::text_of;
using contextune::text_with_thousands;

TEST_CASE("A found region is said in words that a person knows", "[found_region]") {
  FoundRegion region;
  region.launches = 4;
  region.first = "dev_lapl_iter";
  region.entries = 1250;
  region.share = 0.97;
  CHECK(text_of(region) ==
        "every 4 launches from dev_lapl_iter; 1,250 entries; 97 % of the elapsed time");
  region.copies = 1;
  region.threads = 2;
  CHECK(text_of(region) ==
        "every 4 launches and 1 copy from dev_lapl_iter; 1,250 entries on 2 threads; 97 % of the "
        "elapsed time");
  region.graph_launches = 2;
  region.waits = 3;
  region.threads = 1;
  region.joined = 16;
  region.entries = 1;
  region.share = 1;
  CHECK(text_of(region) ==
        "every 4 launches, 2 graph launches, 1 copy and 3 waits from dev_lapl_iter, 16 times an "
        "entry; 1 entry; 100 % of the elapsed time");
}

TEST_CASE("A period of one step is each call of its kind", "[found_region]") {
  FoundRegion region;
  region.entries = 1'234'567;
  region.share = 0.5;
  region.launches = 1;
  region.first = "k";
  CHECK(text_of(region) == "every launch of `k`; 1,234,567 entries; 50 % of the elapsed time");
  region.joined = 1000;
  CHECK(text_of(region) ==
        "every launch of `k`, 1,000 times an entry; 1,234,567 entries; 50 % of the elapsed time");
  region.joined = 1;
  region.launches = 0;
  region.graph_launches = 1;
  region.first.clear();
  CHECK(text_of(region) == "every graph launch; 1,234,567 entries; 50 % of the elapsed time");
  region.graph_launches = 0;
  region.copies = 2;
  CHECK(text_of(region) == "every 2 copies; 1,234,567 entries; 50 % of the elapsed time");
}

TEST_CASE("A share is rounded to all or none only where it is", "[found_region]") {
  const auto share = [](double value) {
    FoundRegion region;
    region.waits = 1;
    region.share = value;
    const std::string text = text_of(region);
    return text.substr(text.rfind(';') + 2);
  };
  CHECK(share(0) == "0 % of the elapsed time");
  CHECK(share(0.004) == "less than 1 % of the elapsed time");
  CHECK(share(0.996) == "99 % of the elapsed time");
  CHECK(share(1) == "100 % of the elapsed time");
  CHECK(share(1.2) == "100 % of the elapsed time");
  CHECK(share(std::numeric_limits<double>::quiet_NaN()) == "0 % of the elapsed time");
}

TEST_CASE("Several found regions are told in one line, none as the process", "[found_region]") {
  FoundRegion step;
  step.launches = 500;
  step.first = "embed";
  step.entries = 64;
  step.share = 0.9;
  FoundRegion graph;
  graph.graph_launches = 1;
  graph.entries = 3000;
  graph.share = 0.05;
  CHECK(text_of(std::vector{step, graph}) ==
        "every 500 launches from embed; 64 entries; 90 % of the elapsed time. Also every graph "
        "launch; 3,000 entries; 5 % of the elapsed time");
  CHECK(text_of(std::vector<FoundRegion>{}) == "nothing repeats: the process is the region");
}

TEST_CASE("A period's steps say what it is made of", "[found_region]") {
  using contextune::StepKind;
  std::vector<std::uint64_t> tokens;
  for (const StepKind kind : {StepKind::Launch, StepKind::Copy, StepKind::Launch,
                              StepKind::GraphLaunch, StepKind::Wait, StepKind::Launch}) {
    tokens.push_back(contextune::step_token(kind, tokens.size()));
    CHECK(contextune::kind_of_step(tokens.back()) == kind);
  }
  CHECK(contextune::step_token(StepKind::Copy, 1) != contextune::step_token(StepKind::Copy, 2));
  const FoundRegion region = contextune::region_of_steps(tokens);
  CHECK(region.launches == 3);
  CHECK(region.graph_launches == 1);
  CHECK(region.copies == 1);
  CHECK(region.waits == 1);
}

TEST_CASE("Thousands are set apart", "[found_region]") {
  CHECK(text_with_thousands(0) == "0");
  CHECK(text_with_thousands(999) == "999");
  CHECK(text_with_thousands(1000) == "1,000");
  CHECK(text_with_thousands(123'456) == "123,456");
  CHECK(text_with_thousands(std::numeric_limits<std::uint64_t>::max()) ==
        "18,446,744,073,709,551,615");
}
