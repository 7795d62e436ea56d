#include "fixture.hpp"

using namespace contextune;

namespace {

struct Capture {
  explicit Capture(Program& of) : program(of) {
    const Simulation& simulation = Simulation::get();
    const auto find = [&](const char* name) {
      return simulation.driver.find_symbol(simulation.library, name);
    };
    const auto create = reinterpret_cast<decltype(&cuStreamCreate)>(find("cuStreamCreate"));
    REQUIRE(create(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    start = reinterpret_cast<CUresult (*)(CUstream, CUstreamCaptureMode)>(
        find("cuStreamBeginCapture_v2"));
    stop = reinterpret_cast<decltype(&cuStreamEndCapture)>(find("cuStreamEndCapture"));
  }
  void begin() {
    program.process().services().captures.begin(stream);
    has_begun();
  }
  void has_begun() {
    REQUIRE(start(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
    program.process().services().captures.begun(stream);
  }
  void end() {
    CUgraph graph = nullptr;
    REQUIRE(stop(stream, &graph) == CUDA_SUCCESS);
    REQUIRE(graph != nullptr);
    program.process().services().captures.end(stream);
  }

  Program& program;
  CUstream stream = nullptr;
  CUresult (*start)(CUstream, CUstreamCaptureMode) = nullptr;
  decltype(&cuStreamEndCapture) stop = nullptr;
};

}  // namespace

TEST_CASE("A captured launch is no trial, and the capture stays whole", "[capture]") {
  Program program;
  program.runtime().declare(blocks({64, 256}));
  Capture capture(program);
  Adder adder(1000);
  for (int i = 0; i < 4; ++i) {
    program.push("step");
    capture.begin();
    CHECK(adder.run(program, 8, 128, 0, capture.stream) == CUDA_SUCCESS);
    capture.end();
    program.pop();
  }
  CHECK(program.lines("trial").empty());
  CHECK(program.said("fallback", {"reason=capture", "region=step"}));
  adder.holds(0);
  // Without captures the same region is tuned from here on.
  program.steps(6, [&] { adder.run(program); });
  CHECK(program.said("winner", {"site=add "}));
  adder.holds(6);
}

TEST_CASE("A region inside a capture makes no pass", "[capture]") {
  Program program;
  program.runtime().declare(blocks({64}));
  Capture capture(program);
  Adder adder(1000);
  capture.begin();
  for (int i = 0; i < 3; ++i) {
    program.push("step");
    CHECK(adder.run(program, 8, 128, 0, capture.stream) == CUDA_SUCCESS);
    program.pop();
  }
  capture.end();
  CHECK(program.lines("trial").empty());
  CHECK(program.lines("stage").empty());
}

TEST_CASE("A capture that is known to have ended does not stop the search", "[capture]") {
  Program program;
  program.runtime().declare(blocks({64, 256}));
  Capture capture(program);
  program.process().services().captures.begin(capture.stream);
  program.process().services().captures.begun(capture.stream);  // its end was not seen
  Adder adder(1000);
  program.steps(6, [&] { adder.run(program); });
  CHECK(program.said("winner", {"site=add "}));
}
TEST_CASE("A capture that outlives the region it began in stays whole", "[capture]") {
  Program program(Program::quick(&Options::mode, Mode::Auto));
  program.runtime().declare(blocks({64, 256}));
  Capture capture(program);
  Adder adder(1000);
  adder.x = program.allocate(1000 * sizeof(float));
  // The second entry finds what the first could not free.
  for (int i = 0; i < 2; ++i) {
    program.push("step");
    CHECK(adder.run(program) == CUDA_SUCCESS);
    if (i == 0) capture.begin();
    program.pop();
    CHECK(adder.run(program, 8, 128, 0, capture.stream) == CUDA_SUCCESS);
  }
  capture.end();
  CHECK(program.said("fallback", {"reason=capture", "region=step"}));
  program.synchronise();
  adder.holds(2);
}

TEST_CASE("A capture that another thread is about to begin is not forgotten", "[capture]") {
  Program program(Program::quick(&Options::mode, Mode::Auto));
  program.runtime().declare(blocks({64, 256}));
  Capture capture(program);
  Adder adder(1000);
  intercept::CaptureWatch& captures = program.process().services().captures;
  // Between our hook and the driver, which does not know of it yet.
  captures.begin(capture.stream);
  program.push("step");
  CHECK(adder.run(program) == CUDA_SUCCESS);
  program.pop();
  CHECK(program.said("fallback", {"reason=capture", "region=step"}));
  CHECK(captures.possible());
  capture.has_begun();
  CHECK(captures.any());
  CHECK(adder.run(program, 8, 128, 0, capture.stream) == CUDA_SUCCESS);
  capture.end();
  CHECK_FALSE(captures.possible());
  program.synchronise();
  adder.holds(1);
}

TEST_CASE("A capture that could not begin leaves the one that is under way", "[capture]") {
  Program program;
  Capture capture(program);
  intercept::CaptureWatch& captures = program.process().services().captures;
  capture.begin();
  captures.begin(capture.stream);
  captures.failed(capture.stream);
  CHECK(captures.any());
  capture.end();
  captures.begin(capture.stream);
  captures.failed(capture.stream);
  CHECK_FALSE(captures.possible());
}
