#include <string>

#include <contextune/error.hpp>
#include <contextune/kernel_name.hpp>
#include <contextune/tensor.hpp>
#include <contextune/version.hpp>

#include "api/named_values.hpp"
#include "catch.hpp"

using contextune::Config;
using contextune::Error;
using contextune::Key;
using contextune::Tensor;
using contextune::tensor_key;
using contextune::api::parse_config;
using contextune::api::parse_key;

namespace sample {
template <int a, bool b, class T>
void kernel(T*) {}
void plain(int) {}
}  // namespace sample

TEST_CASE("A tensor's key tells shape, type and strides that are not contiguous", "[tensor]") {
  CHECK(tensor_key("x", {.shape = {4096, 1024}, .strides = {}, .type = "f32"}).to_string() ==
        "x.shape=4096x1024 x.type=f32");
  CHECK(tensor_key("x", {{4, 8}, {8, 1}, "f32"}) == tensor_key("x", {{4, 8}, {}, "f32"}));
  CHECK(tensor_key("x", {{4, 8}, {1, 4}, "f32"}).to_string() ==
        "x.shape=4x8 x.type=f32 x.strides=1x4");
  CHECK(tensor_key("x", {{1, 8}, {77, 1}, "f32"}) == tensor_key("x", {{1, 8}, {}, "f32"}));
  CHECK(tensor_key("x", {{}, {}, "i64"}).to_string() == "x.shape=scalar x.type=i64");
}

TEST_CASE("Tensors of another shape, type or stride are another problem", "[tensor]") {
  const Key key = tensor_key("x", {{4, 8}, {}, "f32"});
  CHECK_FALSE(key == tensor_key("x", {{8, 4}, {}, "f32"}));
  CHECK_FALSE(key == tensor_key("x", {{4, 8}, {}, "bf16"}));
  CHECK_FALSE(key == tensor_key("x", {{4, 8}, {16, 1}, "f32"}));
  CHECK_FALSE(key == tensor_key("x", {{32}, {}, "f32"}));
}

TEST_CASE("Several tensors are told apart by their place", "[tensor]") {
  const Tensor a{{4}, {}, "f32"};
  const Tensor b{{8}, {}, contextune::element_type<double>()};
  CHECK(tensor_key(a, b).to_string() == "t0.shape=4 t0.type=f32 t1.shape=8 t1.type=f64");
  CHECK(contextune::element_type<unsigned char>() == "u8");
  CHECK(contextune::element_type<bool>() == "bool");
}

TEST_CASE("A tensor needs a stride for each dimension, or none", "[tensor]") {
  CHECK_THROWS_AS(tensor_key("x", {{4, 8}, {1}, "f32"}), Error);
}

TEST_CASE("Configs and keys are read back as they were written", "[text]") {
  const Config config{{"block", 256},        {"share", 0.5},      {"fused", true},
                      {"kind", "two words"}, {"quote", "a\"b\\"}, {"equals", "x=y"}};
  CHECK(parse_config(config.to_string()) == config);
  CHECK(parse_config("default") == Config{});
  CHECK(parse_config("  a=1   b=2 ") == Config{{"a", 1}, {"b", 2}});
  const Key key{{"n", 4096}, {"layout", "row major"}};
  CHECK(parse_key(key.to_string()) == key);
  CHECK(parse_key("").empty());
}

TEST_CASE("Text that is not made of names and values is refused", "[text]") {
  for (const char* text : {"block", "=1", "a=1 b", "a=\"open", "a=\"x\"y", "a b=1"}) {
    INFO(text);
    CHECK_THROWS_AS(parse_config(text), Error);
  }
  CHECK_THROWS_WITH(parse_config("a=1 a=2"), Catch::Contains("'a' twice"));
}

TEST_CASE("A kernel's name is known when compiling", "[kernel_name]") {
  CHECK(contextune::kernel_name<sample::plain>() == "sample::plain");
  CHECK(contextune::kernel_name<&sample::kernel<64, true, float>>() ==
        "sample::kernel<64, true, float>");
}

TEST_CASE("The headers' version is the project's", "[version]") {
  CHECK(std::string(CONTEXTUNE_VERSION) == CONTEXTUNE_TEST_PROJECT_VERSION);
  CHECK(std::string(CONTEXTUNE_VERSION) == std::to_string(CONTEXTUNE_VERSION_MAJOR) + "." +
                                               std::to_string(CONTEXTUNE_VERSION_MINOR) + "." +
                                               std::to_string(CONTEXTUNE_VERSION_PATCH));
}
