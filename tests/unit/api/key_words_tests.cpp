// Keys of what key functions return.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <contextune/key_words.hpp>

#include "catch.hpp"

using contextune::detail::add_words;
using contextune::detail::are_whole;
using contextune::detail::key_of_result;
using contextune::detail::KeyWords;

namespace {

enum class Type { f16, f32 };

template <class Result>
std::string text(const Result& result) {
  return key_of_result(result).to_string();
}

template <class Result>
KeyWords words(const Result& result) {
  KeyWords words;
  add_words(words, result);
  return words;
}

}  // namespace

TEST_CASE("A result of whole numbers is looked up by its words, however it is nested", "[key]") {
  using Nested = std::tuple<std::size_t, std::pair<Type, bool>, std::array<int, 2>>;
  STATIC_REQUIRE(are_whole<Nested>);
  STATIC_REQUIRE(are_whole<std::optional<std::pair<int, std::optional<Type>>>>);
  const Nested one{4, {Type::f32, true}, {8, 16}};
  CHECK(words(one) == words(one));
  CHECK_FALSE(words(one) == words(Nested{4, {Type::f32, true}, {16, 8}}));
  CHECK_FALSE(words(one) == words(Nested{4, {Type::f16, true}, {8, 16}}));
  CHECK(text(one) == "key1=4 key2=(1:1) key3=(8:16)");
}

TEST_CASE("A result with texts or of any length has a key beside its words", "[key]") {
  STATIC_REQUIRE_FALSE(are_whole<std::vector<int>>);
  STATIC_REQUIRE_FALSE(are_whole<std::tuple<int, std::pair<int, std::string>>>);
  STATIC_REQUIRE_FALSE(are_whole<std::array<int, 20>>);
  CHECK(text(std::vector<std::size_t>{8, 16}) == "key=[8:16]");
  CHECK(text(std::vector<bool>{true, false}) == "key=[1:0]");
  CHECK(text(std::vector<int>{}) == "key=[]");
  CHECK(text(std::tuple(2, std::pair(3, std::string("f16")))) == "key1=2 key2=\"(3:\\\"f16\\\")\"");
  CHECK(text(std::pair(std::string("f16"), std::vector<std::pair<int, int>>{{1, 2}, {3, 4}})) ==
        "key1=f16 key2=[(1:2):(3:4)]");
  CHECK(key_of_result(std::array<int, 20>{}).entries().size() == 20);
}

TEST_CASE("An optional that is empty is another key than any value", "[key]") {
  using Maybe = std::optional<int>;
  CHECK_FALSE(words(Maybe()) == words(Maybe(0)));
  CHECK(text(Maybe()) == "");
  CHECK(text(Maybe(0)) == "key=0");
  CHECK(text(std::pair(Maybe(), 5)) == "key2=5");
  CHECK(text(std::optional<std::string>("none")) == "key=none");
  CHECK(text(std::vector<Maybe>{{}, 3}) == "key=[none:3]");
  CHECK_FALSE(words(std::pair(Maybe(), Maybe(1))) == words(std::pair(Maybe(1), Maybe())));
}

TEST_CASE("Different texts and lists have different keys", "[key]") {
  using Texts = std::vector<std::string>;
  CHECK_FALSE(text(Texts{"a:b"}) == text(Texts{"a", "b"}));
  CHECK_FALSE(text(Texts{"a\":\"b"}) == text(Texts{"a", "b"}));
  CHECK_FALSE(text(std::vector<Texts>{{"a"}, {"b"}}) == text(std::vector<Texts>{{"a", "b"}}));
}

TEST_CASE("A size beyond what a whole number of a key holds keeps its digits", "[key]") {
  CHECK(text(std::uint64_t{18446744073709551615U}) == "key=\"18446744073709551615\"");
  CHECK(text(std::tuple(std::uint64_t{18446744073709551615U}, -1)) ==
        "key1=\"18446744073709551615\" key2=-1");
}
