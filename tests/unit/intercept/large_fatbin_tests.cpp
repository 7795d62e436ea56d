// Stored winners of kernels from a fatbin that is too large to be read in passing: they are
// confirmed while it is read behind the scenes.
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

#include "fixture.hpp"

using namespace contextune;

namespace {

/// A fatbin of 2 MiB on the heap, with PTX of `add` and of another kernel.
std::vector<char> fatbin_with(const std::string& add, const std::string& other) {
  const auto kernel = [](const std::string& name, const std::string& body) {
    return ".visible .entry " + name + "(.param .u32 a)\n{\n" + body + "\nret;\n}\n";
  };
  std::string ptx = ".version 8.0\n.target sm_80\n.address_size 64\n" + kernel("_Z3addifPf", add) +
                    kernel("_Z5otherv", other);
  ptx.resize(2U << 20U, ' ');
  ptx.back() = '\0';
  struct {
    std::uint32_t magic = 0xba55ed50;
    std::uint16_t version = 1;
    std::uint16_t header_bytes = 16;
    std::uint64_t bytes = 0;
    std::uint16_t kind = 1;  // PTX
    std::uint16_t entry_version = 0x101;
    std::uint32_t entry_header_bytes = 64;
    std::uint64_t entry_bytes = 0;
    std::uint32_t unused[3]{};
    std::uint32_t architecture = 80;
    std::uint32_t names[2]{};
    std::uint64_t flags = 0x11;
    std::uint64_t more[2]{};
  } header;
  static_assert(sizeof header == 16 + 64);
  header.entry_bytes = ptx.size();
  header.bytes = 64 + ptx.size();
  std::vector<char> fatbin(sizeof header + ptx.size());
  std::memcpy(fatbin.data(), &header, sizeof header);
  std::memcpy(fatbin.data() + sizeof header, ptx.data(), ptx.size());
  return fatbin;
}

/// What a run of the program has done, whose kernels came from that image.
struct Run {
  std::size_t trials = 0;
  std::string verdict;  ///< of the confirmation
  std::size_t fallbacks = 0;
};

class Runs {
 public:
  Runs() { REQUIRE(mkdtemp(folder_.data()) != nullptr); }
  ~Runs() { std::filesystem::remove_all(folder_); }
  Runs(const Runs&) = delete;
  Runs& operator=(const Runs&) = delete;

  /// @param saves how often that run stores winners, those before its end not counted
  Run run(const std::vector<char>& fatbin, std::ptrdiff_t saves) {
    Program program(Program::quick(&Options::cache_dir, folder_, &Options::confirm, true,
                                   &Options::confirm_min_pairs, 2));
    program.process().services().variables.loaded(Simulation::get().module, fatbin.data());
    program.runtime().declare(blocks({32, 1024}));
    Adder adder(1 << 16);
    program.steps(30, [&] { adder.run(program, 1, 128); });
    adder.holds(30);
    const auto saved = [&] {
      return std::ranges::count_if(program.lines("store"), [](const std::string& line) {
        return line.find(" action=saved ") != std::string::npos;
      });
    };
    for (int i = 0; i < 1000 && saved() < saves; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    CHECK(saved() == saves);
    Run done;
    done.trials = program.lines("trial").size();
    done.fallbacks = program.lines("fallback").size();
    for (const char* verdict : {"kept", "skipped", "defaults"})
      if (program.said("confirm", {std::string("verdict=") + verdict})) done.verdict += verdict;
    CHECK(program.said("winner", {"config=2", "block=1024"}));
    return done;
  }

 private:
  std::string folder_ = "/tmp/contextune-large-fatbin-XXXXXX";
};

void check(const Run& run, std::size_t trials, const std::string& verdict) {
  CHECK(run.trials == trials);
  CHECK(run.verdict == verdict);
}

}  // namespace

TEST_CASE("Stored winners are confirmed while a large fatbin is read", "[store]") {
  Runs runs;
  const auto first = fatbin_with("mov.u32 %r1, 1;", "mov.u32 %r1, 1;");
  check(runs.run(first, 1), 3, "kept");
  check(runs.run(first, 0), 0, "skipped");

  SECTION("and hold where another kernel in it was changed") {
    const auto fatbin = fatbin_with("mov.u32 %r1, 1;", "mov.u32 %r1, 2;");
    check(runs.run(fatbin, 1), 0, "kept");
    check(runs.run(fatbin, 0), 0, "skipped");
  }
  SECTION("and are stored for what was read where their own was") {
    const auto fatbin = fatbin_with("mov.u32 %r1, 2;", "mov.u32 %r1, 1;");
    const Run confirmed = runs.run(fatbin, 1);
    check(confirmed, 0, "kept");
    CHECK(confirmed.fallbacks == 0);
    check(runs.run(fatbin, 0), 0, "skipped");
  }
}
