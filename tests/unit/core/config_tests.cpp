#include <contextune/config.hpp>
#include <contextune/config_space.hpp>
#include <contextune/error.hpp>
#include <contextune/key.hpp>

#include "catch.hpp"

using namespace contextune;

TEST_CASE("A config prints its parameters in the order of declaration", "[config]") {
  const Config config{{"block", 256}, {"per_sm", 4}};
  CHECK(config.to_string() == "block=256 per_sm=4");
  CHECK(Config{}.to_string() == "default");
}

TEST_CASE("Values keep their type through text", "[config]") {
  for (const Value& value :
       {Value{std::int64_t{-3}}, Value{2.0}, Value{0.125}, Value{true}, Value{std::string("ring")},
        Value{std::string("12")}, Value{std::string("true")}, Value{std::string("a \"b\" \\ c")},
        Value{std::string()}}) {
    INFO(to_string(value));
    CHECK(parse_value(to_string(value)) == value);
  }
  CHECK(to_string(Value{std::string("LL128")}) == "LL128");
  CHECK(to_string(Value{std::string("a b")}) == "\"a b\"");
}

TEST_CASE("Configs are equal whatever the order of their parameters", "[config]") {
  CHECK(Config{{"a", 1}, {"b", 2}} == Config{{"b", 2}, {"a", 1}});
  CHECK_FALSE(Config{{"a", 1}} == Config{{"a", 1}, {"b", 2}});
  CHECK_FALSE(Config{{"a", 1}} == Config{{"a", 1.0}});
}

TEST_CASE("Reading a parameter that is absent or of another type says so", "[config]") {
  const Config config{{"block", 256}, {"scale", 0.5}};
  CHECK(config.get_int("block") == 256);
  CHECK(config.get_double("block") == 256.0);
  CHECK(config.find("grid") == nullptr);
  CHECK_THROWS_WITH(config.get_int("grid"), Catch::Contains("'block=256 scale=0.5'") &&
                                                Catch::Contains("no parameter 'grid'"));
  CHECK_THROWS_WITH(config.get_int("scale"), Catch::Contains("not a whole number"));
  CHECK_THROWS_AS(config.get_bool("block"), Error);
  CHECK_THROWS_AS(config.get_string("block"), Error);
}

TEST_CASE("A config space is the product of its parameters, the last varying fastest", "[space]") {
  ConfigSpace space;
  space.parameter("block", {64, 128}).parameter("per_sm", {1, 2, 4});
  const std::vector<Config> configs = space.configs();
  REQUIRE(configs.size() == 6);
  CHECK(configs[0].to_string() == "block=64 per_sm=1");
  CHECK(configs[1].to_string() == "block=64 per_sm=2");
  CHECK(configs[5].to_string() == "block=128 per_sm=4");
}

TEST_CASE("A constraint keeps what it is true for", "[space]") {
  ConfigSpace space;
  space.parameter("block", {512, 1024}).parameter("per_sm", {1, 2, 4});
  space.constraint(
      [](const Config& c) { return c.get_int("block") * c.get_int("per_sm") <= 2048; });
  CHECK(space.configs().size() == 5);
  space.constraint([](const Config& c) { return c.get_int("per_sm") > 1; });
  CHECK(space.configs().size() == 3);
  CHECK(space.configs()[0].to_string() == "block=512 per_sm=2");
}

TEST_CASE("An explicit list keeps its order and loses repeats", "[space]") {
  const ConfigSpace space({{{"a", 2}}, {{"a", 1}}, {{"a", 2}}});
  REQUIRE(space.configs().size() == 2);
  CHECK(space.configs()[0].get_int("a") == 2);
  ConfigSpace mixed({{{"a", 1}, {"b", 2}}});
  mixed.add({{"b", 2}, {"a", 1}});
  CHECK(mixed.configs().size() == 1);
}

TEST_CASE("The default is number 0, declared before or not", "[space]") {
  ConfigSpace space;
  space.parameter("a", {1, 2, 3}).default_config({{"a", 2}});
  REQUIRE(space.configs().size() == 3);
  CHECK(space.configs()[0].get_int("a") == 2);
  space.default_config({{"a", 7}});
  CHECK(space.configs().size() == 4);
  CHECK(space.configs()[0].get_int("a") == 7);
}

TEST_CASE("Spaces that cannot be used are refused with the reason", "[space]") {
  ConfigSpace space;
  CHECK_THROWS_WITH(space.configs(), Catch::Contains("no configs"));
  CHECK_THROWS_WITH(space.parameter("a", {}), Catch::Contains("'a'"));
  space.parameter("a", {1, 2});
  CHECK_THROWS_WITH(space.parameter("a", {3}), Catch::Contains("twice"));
  space.constraint([](const Config& c) { return c.get_int("a") > 2; });
  CHECK_THROWS_WITH(space.configs(), Catch::Contains("rule out all 2"));
  space.default_config({{"a", 1}});
  CHECK_THROWS_WITH(space.configs(), Catch::Contains("default config 'a=1'"));
  ConfigSpace huge;
  for (int i = 0; i < 40; ++i) huge.parameter("p" + std::to_string(i), {1, 2, 3, 4});
  CHECK_THROWS_WITH(huge.configs(), Catch::Contains("more than 1000000"));
}

TEST_CASE("A key prints its parts and keeps whole numbers and texts apart", "[key]") {
  Key key{{"n", 1048576}, {"type", "f32"}};
  CHECK(key.to_string() == "n=1048576 type=f32");
  CHECK(Key{{"n", 1}}.to_string() == "n=1");
  CHECK(Key{{"n", "1"}}.to_string() == "n=\"1\"");
  CHECK_FALSE(Key{{"n", 1}} == Key{{"n", "1"}});
  CHECK_FALSE(Key{{"n", 1}}.hash() == Key{{"n", "1"}}.hash());
}

TEST_CASE("A key's hash is the same in every process and on every machine", "[key]") {
  const Key key{{"n", 1048576}, {"type", "f32"}};
  CHECK(key.hash() == 0x2069659af13b3192U);
  CHECK_FALSE(Key{{"ab", "c"}}.hash() == Key{{"a", "bc"}}.hash());
  CHECK_FALSE(Key{{"a", 1}, {"b", 2}}.hash() == Key{{"b", 2}, {"a", 1}}.hash());
}

TEST_CASE("A key can be appended to itself", "[key]") {
  Key key{{"n", 1}, {"m", "text"}};
  key.append(key);
  CHECK(key.to_string() == "n=1 m=text n=1 m=text");
}
