#include "catch.hpp"
#include "space_fixture.hpp"

using namespace contextune;
using namespace contextune::space::test;

namespace {

const std::string endless = "did not end within 10000000 steps; look for a loop that never ends";

}  // namespace

TEST_CASE("What reaches out of a space file is not there, and the error says so") {
  for (const std::string name :
       {"io",           "os",           "package", "debug",  "load",     "loadfile",
        "loadstring",   "dofile",       "require", "print",  "pcall",    "xpcall",
        "setmetatable", "getmetatable", "rawget",  "rawset", "rawequal", "rawlen",
        "next",         "coroutine",    "utf8",    "_G",     "warn",     "collectgarbage"}) {
    INFO(name);
    CHECK(contains(load_error("local x = " + name),
                   "FILE:1: '" + name + "' is not available in a space file"));
    CHECK(contains(load_error("local x = _ENV." + name), "is not available in a space file"));
  }
  for (const std::string name : {"match", "gmatch", "gsub", "dump"}) {
    CHECK(contains(load_error("local x = string." + name + "('a', 'a')"),
                   "FILE:1: string." + name + " is not available in a space file"));
    CHECK(contains(load_error("local x = ('a'):" + name + "('a')"), "is not available"));
  }
  CHECK(contains(load_error("table.move({}, 1, 1 << 60, 2)"), "table.move is not available"));
  CHECK(contains(load_error("local x = math.random()"), "every process must come to the same"));
  CHECK(contains(load_error("math.randomseed(1)"), "every process must come to the same"));
  CHECK(contains(load_error("local x = ('a'):find('a.-b')"), "takes no patterns"));
}

TEST_CASE("Nothing of the process can be reached through what is there") {
  // A text's methods are those of the string table that the file sees, and no more.
  CHECK(load_error("local s = ('').rep assert(s == string.rep)").empty());
  CHECK(contains(load_error("string.rep = nil local x = ('x'):rep(3)"), "attempt to call a nil"));
  // Replacing the environment takes names away and brings none.
  CHECK(contains(load_error("local _ENV = {} local x = io.open"), "attempt to index a nil value"));
  CHECK(contains(load_error("local f <close> = 5"), "non-closable"));
  CHECK(contains(load_error("local x = _ENV[1]"), "a global's name must be a text"));
  CHECK(contains(load_error("goto nowhere"), "no visible label"));
  // Addresses would tell one process from another.
  CHECK(load_error("assert(tostring({}) == 'table' and tostring(kernel) == 'function')").empty());
  CHECK(contains(load_error("local s = string.format('%s', {})"), "was given a table"));
  CHECK(contains(load_error("local s = string.format('%p', 'x')"), "knows no %p"));
  CHECK(contains(load_error("local s = string.format('%%%-10p', 'x')"), "knows no %p"));
  CHECK(load_error("assert(string.format('100%%p %d', 5) == '100%p 5')").empty());
}

TEST_CASE("An endless loop ends with an error in every place") {
  CHECK(load_error("\nwhile true do end") == "FILE:2: " + endless);
  CHECK(load_error("\n\nlocal function f() return f() end\nf()").starts_with("FILE:3: "));
  CHECK(contains(load_error("::a:: goto a"), endless));
  CHECK(contains(load_error("for i = 1, math.huge do end"), endless));

  CHECK(key_error("kernel 'k' {\nkey = function()\nwhile true do end end }") ==
        "FILE:3: kernel 'k': key: " + endless);
  CHECK(configs_error("kernel 'k' { space = { a = {1, 2, 3} }, apply = function() end,\n"
                      "prune = function() while true do end end }") ==
        "FILE:2: kernel 'k': prune: " + endless);
  CHECK(
      apply_error("kernel 'k' { space = { a = {1} },\napply = function()\n\nrepeat until false end "
                  "}") == "FILE:4: kernel 'k': apply: " + endless);
}

TEST_CASE("Pruning many configs shares one limit") {
  const std::string text =
      "local v = {} for i = 1, 10000 do v[i] = i end\n"
      "kernel 'k' { space = { a = v }, apply = function() end,\n"
      "prune = function() for i = 1, 100000 do end return true end }";
  CHECK(contains(configs_error(text), "FILE:3: kernel 'k': prune: " + endless));
}

TEST_CASE("Single steps that take long do not add up to endless time") {
  // Each of these runs in C, where no instruction is counted.
  CHECK(load_error("assert((''):rep(1 << 60) == '' and (''):rep(1 << 60, '') == '')").empty());
  for (const std::string body : {
           "while true do local s = ('x'):rep(1000000) end",
           "local t = {} for i = 1, 60000 do t[i] = i end while true do table.sort(t) end",
           "local t = {} for i = 1, 60000 do t[i] = i end while true do table.insert(t, 1, "
           "table.remove(t)) end",
           "local t = {} for i = 1, 60000 do t[i] = 'x' end while true do local s = "
           "table.concat(t) end",
           "local a = ('x'):rep(1000000) local b = ('x'):rep(1000000) while a == b do end",
           "local a = ('1'):rep(1000000) while true do local n = a + 0 end",
           "local a = ('a'):rep(500000) while true do local i = a:find(('a'):rep(250000) .. 'b', "
           "1, true) end",
           "local a = ('b'):rep(900000) while true do local n = string.packsize(a) end",
           "local a = ('1'):rep(900000) while true do local n = tonumber(a) end",
           "local t = {} for i = 1, 60000 do t[i] = i end while true do for k in pairs(t) do end "
           "end",
           "local f = ('%d'):rep(10) while true do local s = f:format(1,2,3,4,5,6,7,8,9,10) end",
       }) {
    INFO(body);
    CHECK(contains(load_error(body), "did not end within"));
  }
}

TEST_CASE("Comparisons that sort are refused before they fill a thread's stack") {
  const std::string text =
      "local function nested(depth)\n"
      "  local t = {2, 1}\n"
      "  table.sort(t, function(a, b) if depth > 0 then nested(depth - 1) end return a < b end)\n"
      "end\nnested(DEPTH)";
  const auto with = [&](const char* depth) {
    std::string filled = text;
    return filled.replace(filled.find("DEPTH"), 5, depth);
  };
  CHECK(load_error(with("3")).empty());
  CHECK(contains(load_error(with("4")), "sort within comparisons too deeply"));
  CHECK(contains(load_error(with("190")), "sort within comparisons too deeply"));
}

TEST_CASE("Memory is limited for one text, one table and all together") {
  for (const std::string body : {
           "local s = ('x'):rep(1 << 40)",
           "local s = 'x' while true do s = s .. s end",
           "local t = {} for i = 1, 1 << 40 do t[i] = i end",
           "local t = {} for i = 1, 1 << 40 do t[i .. ''] = i end",
           "local t = {} local s = ('x'):rep(1000) for i = 1, 60000 do t[i] = s .. i end",
           "local t = {} for i = 1, 60 do t[i] = (i .. ' '):rep(300000) end",
           "local function f(n) return 1 + f(n + 1) end f(1)",
           "local s = string.format('%99.99f', 1):rep(20000)",
       }) {
    INFO(body);
    const std::string message = load_error(body);
    CHECK(contains(message, "FILE:1: "));
    CHECK((contains(message,
                    "asked for more memory than a space file may have (16 MiB in all, 1 "
                    "MiB for one text or table)") ||
           contains(message, "stack overflow") || contains(message, "resulting string too large")));
  }
  CHECK(contains(apply_error(with_apply("local t = {}\nwhile true do t[#t + 1] = t end")),
                 "FILE:6: kernel 'k': apply: asked for more memory"));
}

TEST_CASE("A rule works on after its memory and its steps ran out") {
  const auto rule = one_rule(R"(
    kernel "k" { key = function(launch)
      if launch.grid.x == 1 then local s = 'x' while true do s = s .. s end end
      if launch.grid.x == 2 then while true do end end
      return launch.grid.x
    end })");
  for (int i = 0; i < 5; ++i) {
    for (const std::uint32_t grid : {1U, 2U, 3U}) {
      TestLaunch launch;
      launch.grid(grid);
      LaunchReads reads;
      const auto key = [&] { return rule->key(launch.view(), reads).to_string(); };
      if (grid == 3) {
        CHECK(key() == "key=3");
      } else {
        CHECK_FALSE(message_of([&] { static_cast<void>(key()); }).empty());
      }
    }
  }
}

TEST_CASE("Deep nesting is refused by the parser, not by the stack") {
  const auto many = [](const std::string& text) {
    std::string result;
    for (int i = 0; i < 5000; ++i) result += text;
    return result;
  };
  const std::string refusal = "FILE: is nested too deeply; write it in fewer levels";
  CHECK(load_error("local x = " + many("(") + "1" + many(")")) == refusal);
  CHECK(load_error("local x = " + many("{") + many("}")) == refusal);
  CHECK(load_error(many("do ") + many("end ")) == refusal);
}

TEST_CASE("A file that Lua would compile for seconds is refused at the line that it got to") {
  std::string chain;
  for (int i = 0; i < 40'000; ++i) chain += i % 100 == 99 ? " and a\n" : " and a";
  const std::string refusal = load_error("local a\nreturn a" + chain);
  INFO(refusal);
  CHECK(refusal.starts_with("FILE:"));
  CHECK(contains(refusal, ": takes too long to be read up to here"));
}

TEST_CASE("pairs goes over a table in the same order in every process") {
  CHECK(load_error(R"(
    local order = ""
    for k, v in pairs { zeta = 1, alpha = 2, [10] = 3, [2] = 4, "first" } do
      order = order .. k .. "=" .. v .. " "
    end
    assert(order == "1=first 2=4 10=3 alpha=2 zeta=1 ", order)
    for k in pairs {} do error("empty") end
  )")
            .empty());
  CHECK(contains(load_error("\nfor k in pairs { [{}] = 1 } do end"),
                 "FILE:2: pairs goes over numbers and texts as keys, not over a table"));
  CHECK(contains(load_error("\nfor k in pairs(5) do end"),
                 "FILE:2: pairs was given a number; give it a table"));
}

TEST_CASE("The functions that are there do what Lua's manual says") {
  CHECK(load_error(R"(
    assert(ceil_div(10, 3) == 4 and ceil_div(9, 3) == 3 and ceil_div(0, 5) == 0)
    assert(ceil_div(-3, 2) == -1 and ceil_div(6.0, 2) == 3)
    assert(math.max(1, 5) == 5 and math.floor(2.5) == 2 and 7 // 2 == 3)
    assert(("abc"):sub(2) == "bc" and ("ab"):rep(3, "-") == "ab-ab-ab" and #"abc" == 3)
    assert(("gemm_f16"):find("f16", 1, true) == 6 and ("gemm"):find("x", 1, true) == nil)
    assert(("a.b"):find(".", 1, true) == 2 and ("abcabc"):find("abc", 2) == 4)
    assert(("abc"):find("c", -1) == 3 and ("abc"):find("", 10) == nil and ("abc"):find("", 4) == 4)
    assert(("abc"):find("a", -100) == 1 and select("#", ("abc"):find("bc")) == 2)
    local t = {3, 1, 2}
    table.sort(t)
    table.insert(t, 4)
    assert(table.concat(t, ",") == "1,2,3,4" and select("#", table.unpack(t)) == 4)
    assert(table.remove(t) == 4 and #t == 3 and table.pack(1, 2).n == 2)
    assert(tonumber("0x10") == 16 and tonumber("zz", 36) == 1295 and tonumber("x") == nil)
    assert(tostring(1.5) == "1.5" and tostring(nil) == "nil" and tostring(true) == "true")
    assert(type(device) == "userdata" and string.format("%05d %s %g", 42, "x", 0.5) == "00042 x 0.5")
    for i, v in ipairs { 5, 6 } do assert(v == i + 4) end
    global_name = 5
    assert(global_name == 5)
  )")
            .empty());
  CHECK(contains(load_error("ceil_div(1, 0)"), "FILE:1: "));
  CHECK(contains(load_error("local x = undefined_name"),
                 "FILE:1: 'undefined_name' has no value here; define it above"));
}
