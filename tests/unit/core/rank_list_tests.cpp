#include "core/agreement/rank_list.hpp"

#include <vector>

#include "catch.hpp"

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
