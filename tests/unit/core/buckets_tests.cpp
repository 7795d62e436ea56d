// How sizes are grouped.
#include <string>

#include <contextune/buckets.hpp>
#include <contextune/error.hpp>

#include "catch.hpp"

using namespace contextune;

namespace {

constexpr std::uint64_t largest = SizeBucket::no_limit;

std::string refusal_of(const char* text) {
  try {
    static_cast<void>(Buckets::parse(text));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("Powers of two round up, and a power is the last of its bucket", "[buckets]") {
  const Buckets buckets;
  CHECK(buckets.bucket_of(4097) == SizeBucket{4097, 8192});
  CHECK(buckets.bucket_of(8192) == SizeBucket{4097, 8192});
  CHECK(buckets.bucket_of(8193) == SizeBucket{8193, 16384});
  CHECK(buckets.bucket_of(0) == SizeBucket{0, 1});
  CHECK(buckets.bucket_of(1) == SizeBucket{0, 1});
  CHECK(buckets.bucket_of(2) == SizeBucket{2, 2});
  CHECK(buckets.bucket_of(largest) == SizeBucket{(1ULL << 63U) + 1, largest});
  CHECK(buckets.bucket_of(1ULL << 63U).high == 1ULL << 63U);
}

TEST_CASE("Edges bound buckets, and what is larger than the last is one more", "[buckets]") {
  const Buckets buckets = Buckets::parse("4096,64K,1M");
  CHECK(buckets.bucket_of(0) == SizeBucket{0, 4096});
  CHECK(buckets.bucket_of(4096) == SizeBucket{0, 4096});
  CHECK(buckets.bucket_of(4097) == SizeBucket{4097, 65536});
  CHECK(buckets.bucket_of(1U << 20U) == SizeBucket{65537, 1U << 20U});
  CHECK(buckets.bucket_of((1U << 20U) + 1) == SizeBucket{(1U << 20U) + 1, largest});
  CHECK(Buckets::parse("1G").bucket_of(5) == SizeBucket{0, 1U << 30U});
}

TEST_CASE("Exact sizes are each a bucket of their own", "[buckets]") {
  const Buckets buckets = Buckets::parse("exact");
  CHECK(buckets.bucket_of(4097) == SizeBucket{4097, 4097});
  CHECK(buckets.bucket_of(0) == SizeBucket{0, 0});
}

TEST_CASE("Buckets of each kind cover every size once", "[buckets]") {
  for (const char* text : {"pow2", "exact", "100,1000,1K"}) {
    const Buckets buckets = Buckets::parse(text);
    INFO(text);
    for (std::uint64_t bytes = 0; bytes < 2100; ++bytes) {
      const SizeBucket bucket = buckets.bucket_of(bytes);
      REQUIRE(bucket.low <= bytes);
      REQUIRE(bytes <= bucket.high);
      REQUIRE(buckets.bucket_of(bucket.low) == bucket);
      REQUIRE(buckets.bucket_of(bucket.high) == bucket);
    }
  }
}

TEST_CASE("A key tells buckets apart, and not the sizes in them", "[buckets]") {
  using Part = Key::Part;
  CHECK(Buckets().key_part(5000) == Part(std::string("4097-8192")));
  CHECK(Buckets::parse("exact").key_part(5000) == Part(std::int64_t{5000}));
  CHECK(Buckets::parse("4K").key_part(5000) == Part(std::string("over:4096")));
}

TEST_CASE("What a key says of a bucket is read back", "[buckets]") {
  for (const char* text : {"pow2", "exact", "4096,65536,1048576"}) {
    const Buckets buckets = Buckets::parse(text);
    for (const std::uint64_t bytes : {0ULL, 1ULL, 4096ULL, 4097ULL, 5000000ULL}) {
      const auto part = buckets.key_part(bytes);
      const auto* const number = std::get_if<std::int64_t>(&part);
      const std::string in_key =
          number != nullptr ? std::to_string(*number) : std::get<std::string>(part);
      CHECK(Buckets::bucket_of_key(in_key) == buckets.bucket_of(bytes));
    }
  }
  for (const char* text :
       {"", "-", "4096-", "8192-4096", "4096-8192x", "over:", "to:8192", "4096 "})
    CHECK_FALSE(Buckets::bucket_of_key(text).has_value());
}

TEST_CASE("Edges may be given as numbers", "[buckets]") {
  CHECK(Buckets::edges({4096, 65536}) == Buckets::parse("4096,64K"));
  CHECK(Buckets::exact() == Buckets::parse("exact"));
  CHECK_THROWS_AS(Buckets::edges({}), Error);
  CHECK_THROWS_AS(Buckets::edges({0, 1}), Error);
  CHECK_THROWS_AS(Buckets::edges({2, 2}), Error);
  CHECK_THROWS_AS(Buckets::edges({largest}), Error);
}

TEST_CASE("Buckets are written as they are read", "[buckets]") {
  for (const char* text : {"pow2", "exact", "4096,65536,1048576"}) {
    CHECK(Buckets::parse(text).to_string() == text);
    CHECK(Buckets::parse(Buckets::parse(text).to_string()) == Buckets::parse(text));
  }
}

TEST_CASE("A text that gives no buckets is refused with what is wrong in it", "[buckets]") {
  CHECK(refusal_of("4096,1024").find("\"1024\" is not larger than the edge before it") !=
        std::string::npos);
  CHECK(refusal_of("4096,4096").find("not larger") != std::string::npos);
  CHECK(refusal_of("4096,,8192").find("\"\" is no size") != std::string::npos);
  CHECK(refusal_of("4096,").find("\"\" is no size") != std::string::npos);
  CHECK(refusal_of("").find("\"\" is no size") != std::string::npos);
  CHECK(refusal_of("0,4096").find("\"0\" is no edge") != std::string::npos);
  CHECK(refusal_of("4k").find("\"4k\" is no size") != std::string::npos);
  CHECK(refusal_of("4K ").find("\"4K \" is no size") != std::string::npos);
  CHECK(refusal_of("-1").find("\"-1\" is no size") != std::string::npos);
  CHECK(refusal_of("powers").find("\"pow2\", \"exact\", or upper edges") != std::string::npos);
  CHECK(refusal_of("18446744073709551616").find("too large") != std::string::npos);
  CHECK(refusal_of("18446744073709551615").find("too large") != std::string::npos);
  CHECK(refusal_of("99999999999G").find("too large") != std::string::npos);
}

TEST_CASE("The nearest size is that of the smallest ratio", "[buckets]") {
  CHECK(is_nearer(16384, 1024, 5000));  // 3.3 times as large; 1024 is 4.9 times as small
  CHECK(is_nearer(1024, 16384, 3000));
  CHECK(is_nearer(1024, 16384, 0));
  CHECK(is_nearer(16384, 1024, largest));
  CHECK_FALSE(is_nearer(1024, 1024, 5000));
  // As near as each other.
  CHECK(is_nearer(2048, 8192, 4096));
  CHECK_FALSE(is_nearer(8192, 2048, 4096));
}

TEST_CASE("Sizes are within a factor both ways", "[buckets]") {
  CHECK(are_within(1024, 4096, 4));
  CHECK(are_within(4096, 1024, 4));
  CHECK_FALSE(are_within(1024, 4097, 4));
  CHECK(are_within(0, 4, 4));
  CHECK(are_within(largest, largest, 4));
  CHECK_FALSE(are_within(largest, largest / 5, 4));
  CHECK(are_within(largest, largest / 3, 4));
}
