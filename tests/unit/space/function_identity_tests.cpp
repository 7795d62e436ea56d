#include "catch.hpp"
#include "space_fixture.hpp"

using namespace contextune;
using namespace contextune::space;
using namespace contextune::space::test;

namespace {

std::string identity_of(const std::string& text) {
  const SpaceFile file = SpaceFile::parse(text, "test.lua", device());
  return file.find("saxpy", "")->meaning();
}

const std::string before = R"(
scale = 2
local table_of = { x = 1, y = 2, [3] = "z" }
local function half(n) return n // table_of.y end
local function grid(config) return half(config.block) * scale end
kernel "saxpy" {
  space = { block = { 64, 128 } },
  prune = function(config) return config.block > 1 end,
  apply = function(config, launch)
    launch.grid.x = grid(config)
  end,
}
)";

std::string with(const std::string& part, const std::string& put) {
  std::string text = before;
  const std::size_t at = text.find(part);
  REQUIRE(at != text.npos);
  return text.replace(at, part.size(), put);
}

}  // namespace

TEST_CASE("What a kernel is declared as stays the same where its apply does", "[space]") {
  const std::string known = identity_of(before);
  CHECK(known.size() == 16);
  for (int i = 0; i < 20; ++i) CHECK(identity_of(before) == known);
  CHECK(identity_of("-- A comment.\n\n" + before) == known);
  CHECK(identity_of(before + "kernel \"other\" { configs = { { v = 1 } },\n"
                             "apply = function(c, l) l.grid.x = c.v end }\n") == known);
  CHECK(identity_of(with("{ 64, 128 }", "{ 64, 128, 256 }")) == known);
  CHECK(identity_of(with("config.block > 1", "config.block > 2")) == known);
  CHECK(identity_of(with("x = 1, y = 2", "y = 2, x = 1")) == known);
}

TEST_CASE("It is another one where apply is, or anything that it uses", "[space]") {
  const std::string known = identity_of(before);
  CHECK(identity_of(with("= grid(config)", "= 1")) != known);
  CHECK(identity_of(with("half(config.block)", "config.block")) != known);
  CHECK(identity_of(with("n // table_of.y", "n")) != known);
  CHECK(identity_of(with("y = 2", "y = 3")) != known);
  CHECK(identity_of(with("\"z\"", "\"w\"")) != known);
  CHECK(identity_of(with("scale = 2", "scale = 3")) != known);
}

TEST_CASE("A function that uses itself, and one that there is not, are named as well", "[space]") {
  const auto recursive = [](const std::string& base) {
    return identity_of("local function f(n)\n  if n < 2 then return " + base +
                       " end\n  return f(n - 1)\nend\nkernel \"saxpy\" { configs = { { v = 1 } },\n"
                       "apply = function(c, l) l.grid.x = f(c.v) end }\n");
  };
  CHECK(recursive("1") == recursive("1"));
  CHECK(recursive("1") != recursive("2"));
  CHECK(identity_of("kernel \"saxpy\" { variants = { \"saxpy\", \"saxpy2\" } }").empty());
}
