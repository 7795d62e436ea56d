// How far results may differ where the user says so.
#include <cmath>
#include <cstring>
#include <vector>

#include "catch.hpp"
#include "core/value/result_tolerance.hpp"

using contextune::ResultTolerance;

namespace {

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values, std::size_t odd_bytes = 0) {
  std::vector<std::byte> bytes(values.size() * sizeof(T) + odd_bytes, std::byte{7});
  std::memcpy(bytes.data(), values.data(), values.size() * sizeof(T));
  return bytes;
}

template <typename T>
bool agree(const char* tolerance, std::vector<T> a, std::vector<T> b) {
  const auto parsed = ResultTolerance::parse(tolerance);
  REQUIRE(parsed.has_value());
  return parsed->agree(bytes_of(a), bytes_of(b));
}

}  // namespace

TEST_CASE("Without a tolerance results agree in all bits or not at all", "[tolerance]") {
  const ResultTolerance bitwise;
  CHECK(bitwise.is_bitwise());
  CHECK(bitwise.agree(bytes_of<float>({1, 2}), bytes_of<float>({1, 2})));
  CHECK_FALSE(
      bitwise.agree(bytes_of<float>({1, 2}), bytes_of<float>({1, std::nextafter(2.0F, 3.0F)})));
}

TEST_CASE("Numbers agree within the share of the larger one", "[tolerance]") {
  CHECK(agree<float>("f32:1e-3", {1000, -1000, 0}, {1000.9F, -999.1F, 0}));
  CHECK_FALSE(agree<float>("f32:1e-3", {1000}, {1001.5F}));
  CHECK_FALSE(agree<float>("f32:1e-3", {1}, {-1}));
  CHECK_FALSE(agree<float>("f32:1e-3", {0}, {1e-30F}));
  CHECK(agree<double>("f64:1e-9", {1e300}, {1e300 * (1 + 5e-10)}));
  CHECK_FALSE(agree<double>("f64:1e-9", {1e300}, {1e300 * (1 + 5e-9)}));
  // 1.0 and the next number up, in halves and in bfloat16.
  CHECK(agree<std::uint16_t>("f16:1e-3", {0x3c00}, {0x3c01}));
  CHECK_FALSE(agree<std::uint16_t>("f16:1e-4", {0x3c00}, {0x3c01}));
  CHECK(agree<std::uint16_t>("bf16:1e-2", {0x3f80}, {0x3f81}));
  CHECK_FALSE(agree<std::uint16_t>("bf16:1e-3", {0x3f80}, {0x3f81}));
  CHECK(agree<std::uint16_t>("f16:0.5", {0x0003}, {0x0004}));
}

TEST_CASE("What is no number agrees with itself only", "[tolerance]") {
  const float infinity = HUGE_VALF;
  const float nothing = std::nanf("");
  CHECK(agree<float>("f32:0.5", {infinity, nothing}, {infinity, nothing}));
  CHECK_FALSE(agree<float>("f32:0.5", {infinity}, {-infinity}));
  CHECK_FALSE(agree<float>("f32:0.5", {infinity}, {1e30F}));
  CHECK_FALSE(agree<float>("f32:0.5", {nothing}, {1}));
}

TEST_CASE("Bytes behind the last whole number have to be the same", "[tolerance]") {
  const auto tolerance = ResultTolerance::parse("f32:0.1").value();
  const auto a = bytes_of<float>({1}, 2);
  auto b = bytes_of<float>({1.05F}, 2);
  CHECK(tolerance.agree(a, b));
  b.back() = std::byte{8};
  CHECK_FALSE(tolerance.agree(a, b));
}

TEST_CASE("A tolerance names a type and a share", "[tolerance]") {
  for (const char* text : {"", "f32", "1e-5", "f32:", "f32:0", "f32:1", "f32:-1e-5", "f32:x",
                           "f32:1e-5 ", "i32:1e-5", "f8:0.1", ":0.1"}) {
    INFO(text);
    CHECK_FALSE(ResultTolerance::parse(text).has_value());
  }
}
