// What an operator says of choices: --force and a space file go before what the code says.
#include <string>
#include <vector>

#include <contextune/contextune.hpp>

#include "catch.hpp"
#include "program.hpp"

using contextune::Choice;
using contextune::Config;
using contextune::ConfigSpace;

namespace {

/// Adds 1 with three implementations, of which `large` in blocks of 128 is the fastest.
struct Added {
  explicit Added(const std::string& name, contextune::Fusion fusion = contextune::Fusion::Auto)
      : choice(name, {.fusion = fusion, .n_repeat = 2}) {
    const auto doing = [this](const char* which) {
      return [this, which](const Config& config, CUdeviceptr at) {
        const Config::Entry* block = config.empty() ? nullptr : &config.entries().front();
        ran.push_back(block == nullptr ? which : which + (" " + config.to_string()));
        const unsigned threads =
            block == nullptr ? 256 : static_cast<unsigned>(config.get_int("block"));
        return Program::on().add(at, 64, 1.0F, 1, threads);
      };
    };
    choice
        .buffers([](CUdeviceptr at) {
          return contextune::ChoiceMemory{{{reinterpret_cast<void*>(at), 256}}};
        })
        .add("plain", doing("plain"))
        .add("large", ConfigSpace().parameter("block", {256, 128}), doing("large"))
        .add("small", ConfigSpace().parameter("block", {64}), doing("small"));
  }
  std::string winner() {
    const CUdeviceptr y = Program::on().floats(64);
    choice(y);
    REQUIRE(Program::read(y, 64) == std::vector<float>(64, 1.0F));
    return ran.back();
  }
  std::vector<std::string> ran;
  Choice<CUresult(CUdeviceptr)> choice;
};

}  // namespace

TEST_CASE("A choice that is forced runs what it is pinned to", "[choice_pins]") {
  CHECK(Added("forced").winner() == "large block=256");
  CHECK(log_lines({"event=winner", "site=forced", "block=256", "reason=pinned"}).size() == 1);
  CHECK(Added("not_forced").winner() == "large block=128");
}

TEST_CASE("A space file pins an implementation, and its configs are searched", "[choice_pins]") {
  Added pinned("pinned_by_file");
  CHECK(pinned.winner() == "large block=128");
  for (const std::string& one : pinned.ran) CHECK(one.find("small") == one.npos);
  CHECK(Added("pinned_to_small").winner() == "small block=64");
}

TEST_CASE("A space file excludes implementations", "[choice_pins]") {
  Added excluded("excluded_by_file");
  CHECK(excluded.winner() == "small block=64");
  for (const std::string& one : excluded.ran) CHECK(one.find("large") == one.npos);
}

TEST_CASE("What a space file names and is not there is said with file and line", "[choice_pins]") {
  CHECK(Added("pinned_to_nothing").winner() == "large block=128");
  CHECK(log_lines({"event=fault", "choices.lua:5", "pinned_to_nothing", "pin names 'lage'",
                   "they are plain, large and small"})
            .size() == 1);
  CHECK(Added("excludes_nothing").winner() == "large block=128");
  CHECK(log_lines({"event=fault", "choices.lua:6", "excludes_nothing", "exclude names 'rign'",
                   "they are plain, large and small"})
            .size() == 1);
}
