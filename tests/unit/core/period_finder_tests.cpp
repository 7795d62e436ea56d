#include "core/submission/period_finder.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <random>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "period_reader.hpp"

using contextune::Finding;
using contextune::FoundPeriod;
using contextune::PeriodFinder;
using contextune::PeriodStep;

namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr unsigned most_seeds = 40;
#else
constexpr unsigned most_seeds = 400;
#endif

std::size_t taken = 0;  // blocks of memory

}  // namespace

void* operator new(std::size_t size) {
  ++taken;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++taken;
  return std::malloc(size);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace {

using Tokens = std::vector<std::uint64_t>;

Tokens range(std::uint64_t first, std::size_t length) {
  Tokens tokens(length);
  for (std::size_t i = 0; i < length; ++i) tokens[i] = first + i;
  return tokens;
}

Tokens operator*(const Tokens& tokens, std::size_t times) {
  Tokens result;
  for (std::size_t i = 0; i < times; ++i) result.insert(result.end(), tokens.begin(), tokens.end());
  return result;
}

Tokens operator+(Tokens tokens, const Tokens& more) {
  tokens.insert(tokens.end(), more.begin(), more.end());
  return tokens;
}

const FoundPeriod* of_length(const std::vector<FoundPeriod>& periods, std::uint32_t length) {
  for (const FoundPeriod& period : periods)
    if (period.length == length) return &period;
  return nullptr;
}

// A program of loops inside loops: its body as the steps of one round. Kernels come in several
// loops.
class RandomProgram {
 public:
  explicit RandomProgram(unsigned seed) : random_(seed) {}

  Tokens body(unsigned depth, std::size_t most) {
    Tokens steps;
    const unsigned statements = 1 + below(5);
    for (unsigned i = 0; i < statements && steps.size() < most; ++i) {
      if (depth == 0 || below(2) == 0) {
        steps.push_back(below(kernels_));
        continue;
      }
      const Tokens inner = body(depth - 1, most / 2);
      const unsigned most_rounds[] = {3, 30, 300};
      const unsigned rounds = 2 + below(most_rounds[below(3)]);
      for (unsigned k = 0; k < rounds && steps.size() + inner.size() <= most; ++k)
        steps.insert(steps.end(), inner.begin(), inner.end());
    }
    return steps;
  }
  unsigned below(unsigned limit) { return static_cast<unsigned>(random_() % limit); }

 private:
  std::mt19937 random_;
  unsigned kernels_ = 2 + below(30);
};

// The length of the shortest cycle that the steps are a power of.
std::size_t cycle_of(const Tokens& steps) {
  for (std::size_t length = 1; length < steps.size(); ++length)
    if (steps.size() % length == 0 &&
        std::equal(steps.begin() + static_cast<std::ptrdiff_t>(length), steps.end(), steps.begin()))
      return length;
  return steps.size();
}

}  // namespace

TEST_CASE("A finder finds a simple loop and says where its entries begin", "[period_finder]") {
  const std::uint32_t length = GENERATE(1u, 2u, 3u, 4u, 17u, 100u, 500u, 1024u, 4095u, 4096u);
  CAPTURE(length);
  PeriodReader reader;
  const std::size_t rounds = std::max<std::size_t>(8, 64 / length);
  reader.see(range(900'000, 5) + range(1, length) * rounds);
  CHECK(reader.broken_promise() == "");
  CHECK(reader.finder.finding() == Finding::Found);
  REQUIRE(reader.finder.found().size() == 1);
  const FoundPeriod period = reader.finder.found().front();
  CHECK(period.length == length);
  CHECK(reader.finder.tokens(period.id)[0] == 1);
  CHECK(period.entries == rounds);
  CHECK(reader.finder.followed() == period.id);
  CHECK(reader.finder.followed_steps() == period.steps);
  REQUIRE_FALSE(reader.entries.empty());
  CHECK(reader.entries.front().begin <= 5 + std::max(24u, 3 * length));
  for (const PeriodReader::Entry& entry : reader.entries) {
    CHECK(entry.length == length);
    CHECK((entry.begin - 5) % length == 0);
  }
  CHECK_FALSE(reader.keep_inside());
}

TEST_CASE("A finder follows the outer loop once that came three times", "[period_finder]") {
  PeriodReader reader;
  const Tokens round = Tokens{1} * 1024 + Tokens{2};
  reader.see(round * 2 + Tokens{1});
  CHECK(reader.finder.followed_length() == 1);
  reader.see(Tokens{1} * 1023 + Tokens{2} + round * 47);
  CHECK(reader.broken_promise() == "");
  CHECK(reader.finder.followed_length() == 1025);
  CHECK(reader.broken <= 4);
  const auto periods = reader.finder.found();
  REQUIRE(periods.size() == 2);
  CHECK(periods[0].length == 1025);
  CHECK(periods[0].entries == 50);
  CHECK(reader.finder.followed_steps() == 50 * 1025);
  CHECK(periods[1].length == 1);
  CHECK(periods[1].entries <= 50 * 1024);
  CHECK(periods[1].entries >= 49 * 1024);
  CHECK(reader.keep_inside());
  reader.see(Tokens{1} * 4);
  CHECK(reader.finder.followed_length() == 1);
  CHECK_FALSE(reader.keep_inside());
}

TEST_CASE("A finder knows three loops inside each other", "[period_finder]") {
  PeriodReader reader;
  const Tokens layer = Tokens{1, 2, 3} * 10 + Tokens{4};
  const Tokens step = layer * 8 + range(10, 7);
  reader.see(step * 60);
  CHECK(reader.broken_promise() == "");
  CHECK(reader.finder.followed_length() == step.size());
  const auto periods = reader.finder.found();
  REQUIRE(of_length(periods, 3));
  REQUIRE(of_length(periods, 31));
  REQUIRE(of_length(periods, 255));
  CHECK(reader.keep_inside());
  reader.see(layer * 4);
  CHECK(reader.finder.followed_length() == layer.size());
  CHECK(reader.keep_inside());
  reader.see(Tokens{1, 2, 3} * 4);
  CHECK(reader.finder.followed_length() == 3);
  CHECK_FALSE(reader.keep_inside());
}

TEST_CASE("A caller for whom entries last too long gets those inside", "[period_finder]") {
  PeriodReader reader;
  const Tokens round = Tokens{1, 2} * 100 + Tokens{3};
  reader.see(round * 10);
  REQUIRE(reader.finder.followed_length() == 201);
  CHECK(reader.keep_inside());
  CHECK(reader.finder.followed() == 0);
  CHECK_FALSE(reader.keep_inside());
  std::size_t outside = 0;
  for (const std::uint64_t token : round * 20) {
    if (reader.see(token) == PeriodStep::Outside) ++outside;
    if (reader.finder.followed() != 0) REQUIRE(reader.finder.followed_length() == 2);
  }
  CHECK(outside == 0);
  CHECK_FALSE(reader.keep_inside());
  CHECK(reader.broken_promise() == "");
  const auto periods = reader.finder.found();
  REQUIRE(of_length(periods, 2));
  CHECK(of_length(periods, 2)->entries >= 29 * 100);
}

TEST_CASE("What holds entries that last too long lasts too long as well", "[period_finder]") {
  PeriodReader reader;
  const Tokens round = Tokens{1, 2} * 100 + Tokens{3};
  reader.see(round * 10);
  REQUIRE(reader.keep_inside());
  reader.see((round * 4 + Tokens{4}) * 20);
  CHECK(reader.finder.followed_length() != 201);
  for (const PeriodReader::Entry& entry : reader.entries)
    if (entry.begin > 2010) REQUIRE(entry.length == 2);
  CHECK(reader.broken_promise() == "");
}

TEST_CASE("A loop whose count changes breaks its body's period, and no more", "[period_finder]") {
  const unsigned seed = GENERATE(1u, 2u, 3u, 4u);
  CAPTURE(seed);
  std::mt19937 random(seed);
  PeriodReader reader;
  std::uint64_t inner = 0;
  for (int round = 0; round < 2000; ++round) {
    const std::size_t n = 3 + random() % 60;
    inner += 2 * n;
    reader.see(Tokens{1} + Tokens{2, 3} * n + Tokens{4});
  }
  CHECK(reader.broken_promise() == "");
  const auto periods = reader.finder.found();
  REQUIRE_FALSE(periods.empty());
  CHECK(periods.front().length == 2);
  CHECK(reader.finder.tokens(periods.front().id)[0] == 2);
  const Tokens twice = {2, 3, 2, 3};
  for (const FoundPeriod& period : periods) {
    const auto tokens = reader.finder.tokens(period.id);
    CHECK(std::search(tokens.begin(), tokens.end(), twice.begin(), twice.end()) == tokens.end());
  }
  CHECK(periods.front().steps > inner * 97 / 100);
  // Rounds that came equally often by chance are not followed for long.
  std::uint64_t completed = 0;
  for (const PeriodReader::Entry& entry : reader.entries)
    if (entry.id == periods.front().id) completed += entry.length;
  CHECK(completed > inner * 90 / 100);
}

TEST_CASE("A rare stranger costs an entry or two, and the period goes on", "[period_finder]") {
  const std::size_t length = GENERATE(1u, 4u, 500u, 4096u);
  CAPTURE(length);
  const Tokens body = range(1, length);
  PeriodReader reader;
  reader.see(body * 24);
  const std::uint32_t id = reader.finder.followed();
  REQUIRE(id != 0);
  std::mt19937 random(7);
  for (std::uint64_t stranger = 0; stranger < 20; ++stranger) {
    reader.see(Tokens{1'000'000 + stranger});
    CHECK(reader.finder.followed() == 0);
    reader.see(body[0]);
    CHECK(reader.finder.followed() == id);
    reader.see(body[1 % length]);
    const std::size_t rest = length > 2 ? length - 2 : 0;
    for (std::size_t i = 0; i < rest; ++i) reader.see(body[i + 2]);
    reader.see(body * 8);
    // In the middle of an entry: inserted, in place of a step, or with a step left out.
    const std::size_t cut = random() % length;
    for (std::size_t i = 0; i < cut; ++i) reader.see(body[i]);
    if (stranger % 3 != 2) reader.see(Tokens{2'000'000 + stranger});
    for (std::size_t i = cut + (stranger % 3 == 0 ? 0 : 1); i < length; ++i) reader.see(body[i]);
    reader.see(body * 8);
    CHECK(reader.finder.followed() == id);
  }
  CHECK(reader.broken_promise() == "");
  CHECK(reader.finder.found().size() == 1);
  CHECK(reader.broken <= 60);
  CHECK(reader.entries.size() > 20 * 15);
}

TEST_CASE("A period is known again after a stranger though its first token comes often in it",
          "[period_finder]") {
  PeriodReader reader;
  const Tokens body = {1, 1, 2, 1, 3};
  reader.see(body * 20);
  const std::uint32_t id = reader.finder.followed();
  REQUIRE(reader.finder.followed_length() == 5);
  CHECK(reader.see(9) == PeriodStep::Broken);
  for (const std::uint64_t token : body) CHECK(reader.see(token) == PeriodStep::Outside);
  CHECK(reader.finder.followed() == id);
  CHECK(reader.see(1) == PeriodStep::Begins);
  // Left in the middle, and entered again with what looks like its next steps.
  reader.see(Tokens{1, 2, 1});
  CHECK(reader.see(1) == PeriodStep::Broken);
  reader.see(Tokens{2, 1, 3});
  CHECK(reader.finder.followed() == id);
  CHECK(reader.see(1) == PeriodStep::Begins);
  CHECK(reader.broken_promise() == "");
}

TEST_CASE("A loop that ends with its first step over and over is not begun each time",
          "[period_finder]") {
  PeriodReader reader;
  reader.see(Tokens{1, 2} * 50);
  REQUIRE(reader.finder.followed_length() == 2);
  int restarts = 0;
  for (int i = 0; i < 60; ++i)
    if (reader.see(1) == PeriodStep::Restarts) ++restarts;
  CHECK(restarts <= 1);
  CHECK(reader.finder.followed_length() == 1);
  CHECK(reader.broken_promise() == "");
}

TEST_CASE("A kernel of its own loop is no inner loop where it comes once", "[period_finder]") {
  PeriodReader reader;
  reader.see(Tokens{1} * 50 + Tokens{2, 1, 3, 4} * 50);
  const auto periods = reader.finder.found();
  REQUIRE(periods.size() == 2);
  CHECK(periods[0].length == 4);
  CHECK(periods[1].length == 1);
  CHECK(periods[1].entries < 60);
  CHECK_FALSE(reader.keep_inside());
}

TEST_CASE("A stranger in an outer loop does not lose it", "[period_finder]") {
  PeriodReader reader;
  const Tokens round = Tokens{1} * 300 + Tokens{2};
  reader.see(round * 20);
  REQUIRE(reader.finder.followed_length() == 301);
  reader.see(Tokens{1} * 100 + Tokens{7} + Tokens{1} * 200 + Tokens{2});
  CHECK(reader.finder.followed_length() <= 1);
  reader.see(round);
  CHECK(reader.finder.followed_length() == 301);
  CHECK(reader.see(1) == PeriodStep::Begins);
  CHECK(reader.broken_promise() == "");
  CHECK(reader.finder.found().size() == 2);
}

TEST_CASE("Rotations of a cycle are one period", "[period_finder]") {
  PeriodReader reader;
  const Tokens body = {1, 2, 3, 4, 5, 6};
  for (std::ptrdiff_t cut = 0; cut < 6; ++cut) {
    Tokens rotated = body;
    std::rotate(rotated.begin(), rotated.begin() + cut, rotated.end());
    // Far enough from each other that the first is no longer in sight.
    reader.see(rotated * 100 + range(1000 + 1000 * static_cast<std::uint64_t>(cut), 900));
  }
  CHECK(reader.broken_promise() == "");
  const auto periods = reader.finder.found();
  REQUIRE(periods.size() == 1);
  CHECK(reader.finder.tokens(periods[0].id)[0] == 1);
  CHECK(periods[0].entries >= 6 * 99);
  CHECK(periods[0].entries <= 6 * 100);
}

TEST_CASE("The same cycle has one identity in every finder", "[period_finder]") {
  std::vector<FoundPeriod> found;
  for (std::ptrdiff_t cut = 0; cut < 4; ++cut) {
    PeriodReader reader;
    Tokens body = {1, 1, 2, 3};
    std::rotate(body.begin(), body.begin() + cut, body.end());
    reader.see(body * 50);
    const auto periods = reader.finder.found();
    REQUIRE(periods.size() == 1);
    found.push_back(periods.front());
  }
  for (const FoundPeriod& period : found) {
    CHECK(period.identity == found.front().identity);
    CHECK(period.length == 4);
    CHECK(period.entries == 50);
    CHECK(period.steps == 200);
  }
}

TEST_CASE("The identity of a cycle is that of its order, not of its tokens alone",
          "[period_finder]") {
  const auto identity = [](const Tokens& body) {
    PeriodReader reader;
    reader.see(body * 20);
    REQUIRE(reader.finder.found().size() == 1);
    return reader.finder.found().front().identity;
  };
  CHECK(identity({1, 2, 3, 4}) == identity({3, 4, 1, 2}));
  CHECK(identity({1, 2, 3, 4}) != identity({1, 3, 2, 4}));
  // The same pairs of neighbours in another order.
  CHECK(identity({1, 2, 1, 3, 1, 2, 4}) == identity({1, 3, 1, 2, 4, 1, 2}));
  CHECK(identity({1, 2, 3, 1, 4, 5}) != identity({1, 4, 3, 1, 2, 5}));
}

TEST_CASE("Where nothing repeats, a finder says so and searches less often", "[period_finder]") {
  PeriodFinder finder;
  std::mt19937_64 random(3);
  const auto work_of = [&](std::size_t steps) {
    const std::uint64_t before = finder.work();
    for (std::size_t i = 0; i < steps; ++i) REQUIRE(finder.see(random()) == PeriodStep::Outside);
    return finder.work() - before;
  };
  const std::uint64_t early = work_of(10'000);
  CHECK(finder.finding() == Finding::Looking);
  work_of(200'000);
  CHECK(finder.finding() == Finding::NothingRepeats);
  CHECK(work_of(10'000) < early / 2);
  CHECK(finder.found().empty());
  CHECK(finder.followed() == 0);
  // And is not too late for a loop that comes then.
  std::size_t outside = 0;
  for (const std::uint64_t token : Tokens{1, 2, 3} * 1000)
    if (finder.see(token) == PeriodStep::Outside) ++outside;
  CHECK(outside <= 1024 + 3);
  CHECK(finder.finding() == Finding::Found);
  // Which makes it search as often as at first.
  outside = 0;
  for (const std::uint64_t token : Tokens{4, 5, 6, 7} * 50)
    if (finder.see(token) == PeriodStep::Outside) ++outside;
  CHECK(outside <= 32);
}

TEST_CASE("A cycle longer than the limit is not found, and one just within it is",
          "[period_finder]") {
  PeriodReader over;
  over.see(range(1, PeriodFinder::longest + 1) * 12);
  CHECK(over.finder.found().empty());
  CHECK(over.entries.empty());
  PeriodReader within;
  // As an outer loop, which has to come three times.
  within.see((Tokens{0} * (PeriodFinder::longest - 1) + Tokens{1}) * 12);
  CHECK(within.finder.followed_length() == PeriodFinder::longest);
  CHECK(within.broken_promise() == "");
}

TEST_CASE("Rounds whose grids grow are a period where tokens have the grid's power of two",
          "[period_finder]") {
  const bool exact = GENERATE(true, false);
  PeriodReader reader;
  for (std::uint64_t grid = 100; grid < 500; ++grid) {
    for (std::uint64_t kernel = 0; kernel < 50; ++kernel) {
      const std::uint64_t size = kernel % 20 == 5 ? grid : 7;
      const std::uint64_t token = kernel * 1'000'000 + (exact ? size : std::bit_floor(size));
      reader.see(token);
    }
  }
  CHECK(reader.broken_promise() == "");
  if (exact) {
    CHECK(reader.entries.empty());
  } else {
    CHECK(reader.entries.size() > 380);
    CHECK(reader.finder.found().size() == 3);
  }
}

TEST_CASE("Phases of a program are found one after another", "[period_finder]") {
  PeriodReader reader;
  for (std::uint64_t phase = 0; phase < 40; ++phase) {
    const std::size_t length = 1 + phase * 97 % 3000;
    reader.see(range(10'000 * phase, length) * (6 + 200 / length));
    CHECK(reader.finder.followed_length() == length);
  }
  CHECK(reader.broken_promise() == "");
}

TEST_CASE("The outermost loop of a random program is followed within 16 rounds",
          "[period_finder]") {
  for (unsigned seed = 0; seed < most_seeds; ++seed) {
    CAPTURE(seed);
    RandomProgram program(seed);
    PeriodReader reader;
    reader.see(program.body(2, 500));  // before the loop
    const Tokens body = program.body(1 + program.below(3), PeriodFinder::longest);
    const std::size_t length = cycle_of(body);
    CAPTURE(length);
    if (body.size() > PeriodFinder::longest) continue;
    reader.see(body * (16 + 60 / length));
    REQUIRE(reader.broken_promise() == "");
    REQUIRE(reader.finder.followed_length() == length);
    for (const FoundPeriod& period : reader.finder.found())
      REQUIRE(period.entries <= reader.times_seen(period.id));
  }
}

TEST_CASE("Loops of few kernels that follow each other keep every promise", "[period_finder]") {
  // In three of these, a search forgets what should begin anew.
  for (unsigned seed = 350 - most_seeds / 7; seed < 350; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto below = [&](unsigned limit) { return static_cast<unsigned>(random() % limit); };
    const unsigned kernels = 2 + below(4);
    const bool keeps_inside = below(2) == 0;
    PeriodReader reader;
    while (reader.steps().size() < 20'000) {
      const unsigned longest_body = below(4) == 0 ? 300 : 6;
      const std::size_t length = 1 + below(longest_body);
      Tokens body;
      const Tokens& steps = reader.steps();
      if (below(3) == 0 && steps.size() > length)  // a part of what came goes on
        body.assign(steps.end() - static_cast<std::ptrdiff_t>(length), steps.end());
      else
        while (body.size() < length) body.push_back(below(kernels));
      reader.see(body * (1 + below(20)));
      if (keeps_inside && below(5) == 0) reader.keep_inside();
    }
    REQUIRE(reader.broken_promise() == "");
    for (const FoundPeriod& period : reader.finder.found())
      REQUIRE(period.entries <= reader.times_seen(period.id));
  }
}

TEST_CASE("Hostile sequences cost bounded work, and no promise is broken", "[period_finder]") {
  const std::size_t steps = 60'000;
  std::mt19937_64 random(11);
  Tokens tokens;
  SECTION("all equal") {
    tokens = Tokens{0} * steps;
  }
  SECTION("a Fibonacci word") {
    Tokens before = {1};
    tokens = {1, 2};
    while (tokens.size() < steps) {
      Tokens next = tokens + before;
      before = std::exchange(tokens, std::move(next));
    }
  }
  SECTION("Thue and Morse's word, in which nothing comes three times in a row") {
    for (std::size_t i = 0; i < steps; ++i) tokens.push_back(std::popcount(i) & 1);
  }
  SECTION("powers of two that divide a counter") {
    for (std::size_t i = 1; i < steps; ++i)
      tokens.push_back(static_cast<std::uint64_t>(std::countr_zero(i)));
  }
  SECTION("a de Bruijn sequence, by a shift register of 15 bits") {
    std::uint32_t state = 1;
    for (std::size_t i = 0; i < steps; ++i) {
      tokens.push_back(state & 1);
      state = state >> 1 | ((state ^ state >> 1) & 1) << 14;
    }
  }
  SECTION("runs whose length grows") {
    for (std::size_t n = 1; tokens.size() < steps; ++n)
      tokens = std::move(tokens) + Tokens{1} * n + Tokens{2};
  }
  SECTION("random steps of two kinds") {
    for (std::size_t i = 0; i < steps; ++i) tokens.push_back(random() % 2);
  }
  SECTION("a long loop whose tokens nearly all collide") {
    Tokens body = Tokens{0} * 3000;
    for (int i = 0; i < 40; ++i) body[random() % body.size()] = 1;
    tokens = body * 20;
  }
  SECTION("large loops that displace each other") {
    for (std::uint64_t i = 0; tokens.size() < steps; ++i)
      tokens = std::move(tokens) + range(10'000 * (i % 7), 2000 + 300 * (i % 7)) * 3 +
               Tokens{1, 1, 2} * (20 + i);
  }
  SECTION("a loop that loses a step each round") {
    for (std::size_t i = 0; tokens.size() < steps; ++i) {
      const Tokens body = range(0, 300 - i % 290);
      tokens = std::move(tokens) + body * 3;
    }
  }
  PeriodReader reader;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    reader.see(tokens[i]);
    if (i % 1009 == 0 && reader.broken_promise() != "") break;
    if (i % 20'011 == 20'010) reader.keep_inside();
  }
  CHECK(reader.broken_promise() == "");
}

TEST_CASE("A finder keeps within half a megabyte, which it takes at once", "[period_finder]") {
  CHECK(PeriodFinder::memory_bytes() < 512 * 1024);
  PeriodFinder finder;
  std::mt19937 random(5);
  RandomProgram program(5);
  std::size_t taken_by_steps = 0;
  for (std::uint64_t loop = 0; loop < 40; ++loop) {
    const Tokens steps = program.body(3, 2000) * 8 + Tokens{random()} + range(loop * 7, 900) * 4;
    const std::size_t before = taken;
    for (const std::uint64_t token : steps) static_cast<void>(finder.see(token));
    static_cast<void>(finder.keep_inside());
    taken_by_steps += taken - before;
  }
  CHECK(taken_by_steps == 0);
  CHECK(finder.found().size() == contextune::KnownPeriods::most);
}
