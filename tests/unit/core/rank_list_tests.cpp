#include "core/agreement/rank_list.hpp"

#include <contextune/error.hpp>
#include <string>
#include <vector>

#include "catch.hpp"

using contextune::ranks_of_text;
using contextune::text_of_ranks;

TEST_CASE("Ranks at equal distances are one part of a text", "[rank_list]") {
  const auto text = [](const std::vector<std::uint32_t>& ranks) { return text_of_ranks(ranks); };
  CHECK(text({}).empty());
  CHECK(text({7}) == "7");
  CHECK(text({0, 1}) == "0-1");
  CHECK(text({0, 2}) == "0+2");
  CHECK(text({0, 2, 4}) == "0-4/2");
  CHECK(text({0, 1, 2, 3, 6}) == "0-3+6");
  CHECK(text({1, 5, 6, 7, 20, 28, 36}) == "1+5-7+20-36/8");
}

TEST_CASE("Ranks are read from their text, in any order", "[rank_list]") {
  using Several = std::vector<std::uint32_t>;
  CHECK(ranks_of_text("").empty());
  for (const Several& ranks : {Several{7}, Several{0, 1}, Several{0, 2}, Several{0, 2, 4},
                               Several{1, 5, 6, 7, 20, 28, 36}})
    CHECK(ranks_of_text(text_of_ranks(ranks)) == ranks);
  CHECK(ranks_of_text("6+0-3+2") == Several{0, 1, 2, 3, 6});
  CHECK(ranks_of_text("0-5/2") == Several{0, 2, 4});
  for (const char* wrong :
       {"a", "0-", "-1", "3-1", "0-4/0", "0/2", "0,1", "0++1", " 0", "0-4/2/2", "0-4294967295"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(ranks_of_text(wrong), contextune::Error);
  }
}
