#include "catch.hpp"
#include "space_fixture.hpp"

using namespace contextune;
using namespace contextune::space;
using namespace contextune::space::test;

namespace {

struct Case {
  std::string text;
  std::string message;
};

void check(const std::vector<Case>& cases) {
  for (const Case& test : cases) {
    INFO(test.text);
    CHECK(load_error(test.text) == test.message);
  }
}

/// The texts are tables of `declared`, which stands on the second line, and the messages name it.
void check_tables(const std::string& declared, const std::vector<Case>& cases) {
  for (const Case& test : cases) {
    INFO(test.text);
    CHECK(load_error("\n" + declared + " { " + test.text + " }") ==
          "FILE:2: " + declared + ": " + test.message);
  }
}

const std::string apply = ", apply = function() end";

}  // namespace

TEST_CASE("Wrong keys of a kernel are named with what was meant") {
  check_tables(
      "kernel 'k'",
      {
          {"spcae = {}", "'spcae' is not known here; did you mean 'space'?"},
          {"tile = 5",
           "'tile' is not known here; known are params, key, size, buckets, unseen, space, "
           "configs, prune, apply, variants, co_resident, n_warmup and n_repeat"},
          {"buckets = 'pow2'",
           "has buckets but no size, so nothing says what is grouped; add size = function(launch) "
           "return launch.args[1] end"},
          {"unseen = 'nearest'",
           "has unseen but no size, so nothing says what is grouped; add size = function(launch) "
           "return launch.args[1] end"},
          {"unseen = 'neares', size = function() end",
           "unseen = \"neares\" is not known; did you mean 'nearest'?"},
          {"buckets = 'pow', size = function() end",
           "buckets = \"pow\" is not known; did you mean 'pow2'?"},
          {"size = 5", "size is a number; make it a function, as in size = function(...) ... end"},
          {"5", "has an entry without a name; name it, as in space = { ... }"},
          {"key = 5", "key is a number; make it a function, as in key = function(...) ... end"},
          {"co_resident = 1", "co_resident is a number; make it true or false"},
          {"n_warmup = -1", "n_warmup must be a whole number from 0 to 1000; correct it"},
          {"n_repeat = 0", "n_repeat must be a whole number from 1 to 1000; correct it"},
          {"n_repeat = 1.5", "n_repeat must be a whole number from 1 to 1000; correct it"},
          {"n_repeat = '3'", "n_repeat must be a whole number from 1 to 1000; correct it"},
      });
}

TEST_CASE("Wrong spaces are named with what to write") {
  check_tables(
      "kernel 'k'",
      {
          {"space = 5" + apply, "space is a number; make it a table, as in { block = {64, 128} }"},
          {"space = { block = 64 }" + apply,
           "space.block is a number; make it a list, as in {64, 128, 256}"},
          {"space = { block = {} }" + apply, "space.block is empty; give it at least one value"},
          {"space = { block = {64, 64} }" + apply, "space.block lists 64 twice; take one away"},
          {"space = { block = {64, x = 1} }" + apply,
           "space.block has named entries or gaps; make it a list, as in {64, 128, 256}"},
          {"space = { block = {64, {}} }" + apply,
           "space.block[2] is a table; a parameter's value is a number, a text or a boolean"},
          {"space = { block = {1/0} }" + apply,
           "space.block[1] is infinite or not a number; give a finite one"},
          {"space = { block = {'a\\n'} }" + apply,
           "space.block[1] is a text that is empty, too long or holds control characters; shorten "
           "it"},
          {"space = { ['a b'] = {1} }" + apply,
           "space names a parameter 'a b'; use letters, digits and underscores, at most 64"},
          {"space = { {1} }" + apply,
           "space has an entry without a name; write it as in { block = ... }"},
          {"space = {}" + apply, "space names no parameter; write it as in { block = ... }"},
          {"space = { a = {1} }, configs = { { a = 1 } }" + apply,
           "has both space and configs; keep one of them"},
          {"configs = { { a = 1 }, { b = 1 } }" + apply,
           "configs[2] has other parameters than configs[1]; give every config the same ones"},
          {"configs = { { a = 1 }, { a = 1 } }" + apply,
           "configs[2] is listed twice (a=1); take one away"},
          {"configs = { 5 }" + apply, "configs[1] is a number; make it a table of parameters"},
          {"configs = {}" + apply, "configs is empty; give it at least one config"},
          {"space = { a = {1} }",
           "has configs but no apply, so none of them would change anything; add apply = "
           "function(config, launch) ... end"},
          {"prune = function() end",
           "has prune but no configs; add space = { ... } or configs = { ... }"},
          {"variants = { 'a', 'a' }", "variants lists 'a' twice; take one away"},
          {"variants = { 'a' }, space = { variant = {1} }",
           "has variants and a parameter 'variant'; give the parameter another name"},
          {"variants = {}", "variants is empty; give it at least one entry"},
          {"variants = { 5 }", "variants[1] is a number; give it a text"},
          {"params = { 'i32', 'i23' }", "params[2] = \"i23\" is no type; did you mean 'i32'?"},
      });
}

TEST_CASE("A space that gives endlessly many configs is refused before it is built") {
  CHECK(
      contains(load_error("local v = {}\nfor i = 1, 5000 do v[i] = i end\nkernel 'k' { space = { a "
                          "= v, b = v, c = v, d = v, e = v }" +
                          apply + " }"),
               "FILE:3: kernel 'k': space gives more than 10000 configs"));
  CHECK(contains(
      load_error("local v = {}\nfor i = 1, 10000 do v[i] = i end\nfor i = 1, 900 do\nkernel"
                 "('k' .. i) { space = { a = v }" +
                 apply + " }\nend"),
      "FILE:4: kernel 'k11': the kernels of this file have more than 100000 configs"));
  CHECK(contains(load_error("for i = 1, 2000 do kernel('k' .. i) {} end"),
                 "FILE:1: the file declares more than 1000 kernels"));
}

TEST_CASE("Wrong declarations are named with the line") {
  check({
      {"\n\nkernel 'k'",
       "FILE:3: kernel 'k': no table follows the name; write: kernel \"name\" { "
       "... }"},
      {"kernel(5)", "FILE:1: kernel wants a name and then a table; write: kernel \"name\" { ... }"},
      {"kernel('k', {})",
       "FILE:1: kernel wants a name and then a table; write: kernel \"name\" { ... }"},
      {"kernel ''", "FILE:1: kernel was given an empty or endless name; give the demangled name"},
      {"kernel 'k' (5)",
       "FILE:1: kernel was given a number after its name; write: kernel \"name\" { ... }"},
      {"local k = kernel 'k'\nk {}\nk {}",
       "FILE:3: kernel was given a second table; write a declaration of its own"},
      {"kernel 'k<1>' {}\n\nkernel 'k<(int)1>' {}",
       "FILE:3: kernel 'k<(int)1>': was declared in line 1 already; merge the two"},
      {"kernel 'a\\nb' {}",
       "FILE:1: kernel 'a b': the name holds control characters; copy it from what --discover "
       "shows"},
      {"kernal 'k' {}", "FILE:1: 'kernal' has no value here; did you mean 'kernel'?"},
      {"kernel 'k' {", "FILE:1: unexpected symbol near <eof>; correct this line"},
      {"\nkernel 'k' { apply = function(c, launch) launch.function = 'x' end }",
       "FILE:2: <name> expected near 'function'; 'function' is a word of Lua: write launch.kernel "
       "= "
       "\"name\" to choose another"},
  });
}

TEST_CASE("Collectives are checked and kept as data") {
  const Folder folder;
  const SpaceFile file = SpaceFile::load(folder.write("space.lua", R"(
    collective "all_gather" {
      space = { protocol = {"LL", "LL128", "Simple"}, channels = {0, 8, 16, 24} },
      buckets = "pow2", n_repeat = 3 }
    collective "all_reduce" { configs = { { algorithm = "NVLSTree" } }, buckets = "exact" }
    collective "reduce" { space = { algorithm = {"Ring"} }, buckets = {4096, 65536} }
    collective "broadcast" { space = { algorithm = {"Ring"} } }
  )"),
                                         device());
  CHECK(file.rules().empty());
  REQUIRE(file.collectives().size() == 4);
  CHECK(file.collectives()[0].name == "all_gather");
  CHECK(file.collectives()[0].configs.size() == 12);
  CHECK(file.collectives()[0].configs[1].to_string() == "channels=0 protocol=LL128");
  CHECK(file.collectives()[0].buckets == "pow2");
  CHECK(file.collectives()[0].n_repeat == 3);
  CHECK_FALSE(file.collectives()[0].n_warmup);
  CHECK(file.collectives()[1].buckets == "exact");
  CHECK(file.collectives()[2].buckets == "4096,65536");
  CHECK(file.collectives()[3].buckets.empty());

  check_tables("collective 'allgather'",
               {{"space = { channels = {1} }",
                 "is no collective that can be tuned; did you mean 'all_gather'?"}});
  check_tables(
      "collective 'reduce'",
      {
          {"", "has no configs; add space = { protocol = {\"LL\", \"Simple\"} }"},
          {"space = { proto = {'LL'} }",
           "'proto' is no parameter of a collective; known are algorithm, protocol and channels"},
          {"space = { protocol = {'LL', 'simple'} }",
           "protocol = simple is not known; did you mean 'Simple'?"},
          {"space = { channels = {65} }",
           "channels = 65 is not a number of channels; give 0 (as NCCL chooses) to 64"},
          {"space = { algorithm = {1} }",
           "algorithm = 1 is not a text; known are Ring, Tree, CollnetDirect, CollnetChain, NVLS, "
           "NVLSTree and PAT"},
          {"space = { channels = {1} }, buckets = 'pow3'",
           "buckets = \"pow3\" is not known; did you mean 'pow2'?"},
          {"space = { channels = {1} }, buckets = {}",
           "buckets is empty; give it at least one number"},
          {"space = { channels = {1} }, buckets = {64, 32}",
           "buckets[2] = 32 is not larger than the entry before it; correct this line"},
          {"space = { channels = {1} }, buckets = {64, '128'}",
           "buckets[2] must be a whole number of at least 1; correct it"},
          {"space = { channels = {1} }, buckets = {0.5}",
           "buckets[1] must be a whole number of at least 1; correct it"},
          {"space = { channels = {1} }, buckets = { small = 1 }",
           "buckets has named entries or gaps; make it a list, as in {4096, 65536}"},
          {"space = { channels = {1} }, buckets = true", "buckets is a boolean; give it a text"},
          {"apply = function() end",
           "'apply' is not known here; known are space, configs, buckets, n_warmup and n_repeat"},
      });
}

TEST_CASE("What is wrong with a choice is named with file and line") {
  check({
      {"\nchoice 'sum' { pni = 'ring' }",
       "FILE:2: choice 'sum': 'pni' is not known here; did you mean 'pin'?"},
      {"choice 'sum' { }",
       "FILE:1: choice 'sum': says nothing; add pin = \"name\" or exclude = { \"name\" }"},
      {"choice 'sum' { pin = 'ring', exclude = { 'tree', 'ring' } }",
       "FILE:1: choice 'sum': excludes 'ring', which it pins; take one of them away"},
      {"choice 'sum' { pin = 'ring' }\nchoice 'sum' { pin = 'tree' }",
       "FILE:2: choice 'sum': was declared in line 1 already; merge the two"},
  });
}
