// How launches reach the driver: which are chained, which are held, and when those come through.
#include <pthread.h>

#include <chrono>
#include <future>
#include <thread>

#include "submit_fixture.hpp"

using namespace contextune;
using namespace contextune::intercept;

namespace {

using Calls = std::vector<SubmittedCall>;

Calls singles(std::initializer_list<std::pair<const char*, bool>> of) {
  Calls made;
  for (const auto& [kernel, chained] : of) made.push_back({kernel, chained});
  return made;
}

std::atomic<std::uint64_t> nodes_set{0};  ///< of graphs, to other arguments
CUresult CUDAAPI count_node_set(CUgraphExec exec, CUgraphNode node,
                                const CUDA_KERNEL_NODE_PARAMS* params) {
  ++nodes_set;
  return Simulation::get().driver.cuGraphExecKernelNodeSetParams(exec, node, params);
}

void wait_for(const std::function<bool()>& what) {
  constexpr int most_milliseconds = 5000;
  for (int i = 0; i < most_milliseconds && !what(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  REQUIRE(what());
}

std::atomic<bool> is_instantiating{false};
CUresult CUDAAPI instantiate_slowly(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  is_instantiating = true;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const CUresult result = Simulation::get().driver.cuGraphInstantiate(exec, graph, flags);
  is_instantiating = false;
  return result;
}

/// A call of the driver that stands still, as on a full stream, until it is told to go on.
struct StandingCall {
  std::atomic<bool> has_begun{false};
  std::atomic<bool> goes_on{false};

  void wait() {
    has_begun = true;
    while (!goes_on) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  /// Whether that is done meanwhile, which would else wait for it.
  [[nodiscard]] bool holds_up(const std::function<void()>& what) {
    wait_for([this] { return has_begun.load(); });
    const auto done = std::async(std::launch::async, what);
    const bool came = done.wait_for(std::chrono::seconds(5)) == std::future_status::ready;
    goes_on = true;
    return !came;
  }
};

/// While one lives, no thread can be started: none has room for its stack.
class NoThreads {
 public:
  NoThreads() {
    (void)pthread_getattr_default_np(&before_);
    pthread_attr_t changed;
    (void)pthread_getattr_default_np(&changed);
    (void)pthread_attr_setstacksize(&changed, std::size_t{1} << 46U);
    (void)pthread_setattr_default_np(&changed);
    (void)pthread_attr_destroy(&changed);
  }
  ~NoThreads() {
    (void)pthread_setattr_default_np(&before_);
    (void)pthread_attr_destroy(&before_);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t before_{};
};

CUlaunchAttribute clusters() {
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attribute.value.clusterDim = {1, 1, 1};
  return attribute;
}

CUlaunchAttribute priority() {
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  return attribute;
}

StandingCall* standing = nullptr;
CUresult CUDAAPI stand_at_record(CUevent event, CUstream stream) {
  standing->wait();
  return Simulation::get().driver.cuEventRecord(event, stream);
}
CUresult CUDAAPI stand_at_destroy(CUgraphExec exec) {
  standing->wait();
  return Simulation::get().driver.cuGraphExecDestroy(exec);
}

/// Launches two kernels, again and again, until `what` has come of it.
void launch_until(Submitting& program, CUstream on, const std::function<bool()>& what) {
  wait_for([&] {
    Submitting::rest();
    (void)program.launch("step", on);
    (void)program.launch("scale", on);
    return what();
  });
}

/// A program that launches on one stream.
struct OneStream {
  explicit OneStream(Splice splice = Splice::Own) : program(splice) {}

  Submitting program;
  CUstream on = program.stream();

  /// Whether a launch is held where others may be: behind a call, while the GPU has work.
  bool is_held(const char* kernel = "step", unsigned block = 32) {
    program.submitter->hand_over();
    Submitting::rest();  // the GPU had work just now
    (void)program.take_calls();
    const auto before = program.submitter->totals().held;
    (void)program.launch(kernel, on, 1, block);
    const bool was = program.submitter->totals().held > before;
    if (!was) CHECK(program.take_calls().size() == 1);
    return was;
  }
};

}  // namespace

TEST_CASE_METHOD(OneStream, "A launch is chained directly behind a known kernel of its stream only",
                 "[submitter]") {
  const CUstream other = program.stream();
  program.submitter->use({.chained = true});
  bool chained = false;
  std::function<void()> before = [&] { (void)program.launch("step", on); };
  SECTION("a kernel") {
    chained = true;
  }
  SECTION("another call of the driver") {
    before = [&] {
      (void)program.launch("step", on);
      program.submitter->hand_over();  // as the frontend says before every one
    };
  }
  SECTION("a question to the driver") {
    before = [&] {
      (void)program.launch("step", on);
      program.submitter->hand_over(true);
    };
    chained = true;
  }
  SECTION("a launch in clusters") {
    before = [&] { program.launch_with(clusters(), "step", on); };
    chained = true;
  }
  SECTION("a launch on another stream") {
    before = [&] {
      (void)program.launch("step", on);
      (void)program.launch("step", other);
    };
  }
  SECTION("a kernel with a trigger") {
    before = [&] { (void)program.launch("triggering", on); };
  }
  SECTION("a kernel that waits by itself") {
    before = [&] { (void)program.launch("waiting", on); };
    chained = true;
  }
  SECTION("a kernel of code that was not read") {
    before = [&] {
      program.seconds_for_loads = 0;
      const CUmodule known = std::exchange(program.module, program.load_module());
      (void)program.launch("step", on);
      program.module = known;
    };
  }
  SECTION("a launch that failed") {
    before = [&] {
      (void)program.launch("step", on);
      CHECK(program.launch("step", on, 1, 4096) != CUDA_SUCCESS);
    };
  }
  SECTION("a launch with an attribute of the program's") {
    before = [&] { program.launch_with(priority(), "step", on); };
  }
  SECTION("a stretch in which launches went out as written") {
    before = [&] {
      (void)program.launch("step", on);
      program.submitter->use({});
      // The core is not asked about launches meanwhile.
      program.submitter->use({.chained = true});
    };
  }
  SECTION("a stream that is forgotten") {
    before = [&] {
      (void)program.launch("step", on);
      program.submitter->forget_stream();
    };
  }
  before();
  (void)program.take_calls();
  REQUIRE(program.launch("scale", on) == CUDA_SUCCESS);
  CHECK(program.take_calls() == singles({{"scale", chained}}));
}

TEST_CASE_METHOD(
    OneStream,
    "A launch with an attribute of the program's, or of a kernel that does not wait by us, "
    "stays as written",
    "[submitter]") {
  program.submitter->use({.chained = true});
  (void)program.launch("step", on);
  (void)program.take_calls();
  program.launch_with(priority(), "step", on);
  CHECK(program.take_calls() == singles({{"step", false}}));
  program.launch_with(clusters(), "step", on);
  program.launch_with(clusters(), "step", on);
  CHECK(program.take_calls() == singles({{"step", false}, {"step", true}}));
  (void)program.launch("step", on);
  (void)program.take_calls();
  (void)program.launch("waiting", on);
  CHECK(program.take_calls() == singles({{"waiting", false}}));
  (void)program.launch("triggering", on);
  CHECK(program.take_calls() == singles({{"triggering", false}}));
}

TEST_CASE("A kernel that is left out keeps its code and its way, and what follows it is chained",
          "[submitter]") {
  Submitting program(Splice::Own, "^scale$");
  CHECK(program.loads->order_of(program.module, "step")->waits);
  CHECK_FALSE(program.loads->order_of(program.module, "scale")->waits);
  const CUstream on = program.stream();
  program.submitter->use({.chained = true});
  for (const char* kernel : {"step", "scale", "scale", "step"}) (void)program.launch(kernel, on);
  CHECK(program.take_calls() ==
        singles({{"step", false}, {"scale", false}, {"scale", false}, {"step", true}}));
  program.submitter->use({.gathered = 8});
  for (int i = 0; i < 4; ++i) (void)program.launch("scale", on);
  CHECK(program.submitter->totals().held == 0);
  program.synchronise();
}

TEST_CASE_METHOD(
    OneStream,
    "Kernels that stay ordinary are told by numbers, those that were chained most often first",
    "[submitter]") {
  program.submitter->use({.chained = true});
  const auto launch_all = [&] {
    (void)program.take_calls();
    for (const char* kernel : {"scale", "step", "scale", "fencing", "scale"})
      (void)program.launch(kernel, on);
    return program.take_calls();
  };
  (void)launch_all();
  const std::vector<std::uint64_t> kernels = program.submitter->chained_kernels();
  REQUIRE(kernels.size() == 3);
  CHECK(kernels.front() == hash_of_kernel("scale"));
  program.submitter->number_kernels({kernels.front(), hash_of_kernel("step")});
  program.submitter->use({.chained = true, .ordinary = 0b01});
  CHECK(launch_all() == singles({{"scale", false},
                                 {"step", true},
                                 {"scale", false},
                                 {"fencing", true},
                                 {"scale", false}}));
  CHECK(program.submitter->names_of(0b01) == "scale");
  CHECK(program.submitter->names_of(0b11) == "scale, step");
  program.submitter->use({.chained = true, .ordinary = 0b10});
  CHECK(launch_all() == singles({{"scale", false},
                                 {"step", false},
                                 {"scale", true},
                                 {"fencing", true},
                                 {"scale", true}}));
  // Gathered ones are chained within their graph, or one by one while there is none.
  program.submitter->use({.chained = true, .gathered = 4, .ordinary = 0b10});
  program.warm(on);
  program.without_deadline([&] {
    (void)program.take_calls();
    for (const char* kernel : {"scale", "step", "scale"}) (void)program.launch(kernel, on);
    program.submitter->hand_over();
    const Calls made = program.take_calls();
    return made == singles({{"scale", false}, {"step", false}, {"scale", true}}) ||
           made == singles({{"graph", false}});
  });
}

TEST_CASE_METHOD(OneStream, "Kernels are numbered without a new beginning for what is gathered",
                 "[submitter]") {
  program.submitter->use({.gathered = 8});
  program.warm(on);
  const auto before = program.submitter->totals().held;
  program.submitter->number_kernels({hash_of_kernel("step"), hash_of_kernel("scale")});
  (void)program.launch("step", on);
  CHECK(program.submitter->totals().held == before + 1);
}

TEST_CASE_METHOD(OneStream,
                 "While anything is captured, launches stay as written and nothing is held",
                 "[submitter]") {
  const CUstream captured = program.stream();
  program.submitter->use({.chained = true, .gathered = 8});
  program.warm(on);
  program.capture(captured, true);
  const auto before = program.submitter->totals().held;
  (void)program.launch("step", on);
  (void)program.launch("scale", on);
  CHECK(program.take_calls() == singles({{"step", false}, {"scale", false}}));
  CHECK(program.submitter->totals().held == before);
  program.capture(captured, false);
  (void)program.launch("step", on);
  (void)program.launch("scale", on);
  CHECK(program.submitter->totals().held > before);
}

TEST_CASE_METHOD(OneStream,
                 "The frontend is asked to say when another call comes, as long as one matters",
                 "[submitter]") {
  CHECK(program.held() == 0);
  program.submitter->use({.chained = true});
  (void)program.launch("step", on);
  CHECK(program.held() == 1);
  program.submitter->hand_over();
  CHECK(program.held() == 0);
  program.submitter->want_other_calls(true);
  CHECK(program.held() == 1);
  program.submitter->want_other_calls(false);
  CHECK(program.held() == 0);
}

TEST_CASE_METHOD(OneStream,
                 "A launch is held only while the GPU is at work, and once its kind was accepted",
                 "[submitter]") {
  program.submitter->use({.gathered = 8});
  CHECK_FALSE(is_held());
  CHECK(is_held());
  CHECK_FALSE(is_held("step", 64));
  CHECK(is_held("step", 64));
  program.busy = false;
  CHECK_FALSE(is_held());
  program.busy = true;
  program.unguarded = 1;
  CHECK_FALSE(is_held());
  program.unguarded = 0;
  CHECK(is_held());
}

TEST_CASE_METHOD(OneStream,
                 "A launch is not held if its kernel may write where others look meanwhile",
                 "[submitter]") {
  program.submitter->use({.gathered = 8});
  program.warm(on);
  Allocation x;
  x.begin = program.x;
  x.bytes = 32;
  x.device = 0;
  CHECK(is_held());
  SECTION("memory of the host") {
    x.kind = AllocationKind::Host;
    x.device = -1;
  }
  SECTION("memory that moves to the host") {
    x.kind = AllocationKind::Managed;
  }
  SECTION("memory of another process") {
    x.kind = AllocationKind::Imported;
  }
  SECTION("memory of another device") {
    x.device = 1;
  }
  program.memory->allocations().add(x);
  CHECK_FALSE(is_held());
  program.memory->allocations().release(x.begin);
  program.memory->allocations().released(x.begin, true);
  CHECK(is_held());
  x.kind = AllocationKind::Device;
  x.device = 0;
  program.memory->allocations().add(x);
  CHECK(is_held());
}

TEST_CASE("A kernel that copies through tensor maps without a fence for them is not held",
          "[submitter]") {
  OneStream reading(Splice::Off);  // its code is read all the same
  Submitting& program = reading.program;
  program.submitter->use({.gathered = 8});
  program.warm(reading.on, {"mapping", "fencing"});
  CHECK_FALSE(reading.is_held("mapping"));
  CHECK(reading.is_held("fencing"));
  CHECK_FALSE(program.loads->order_of(program.module, "fencing")->waits);
}

TEST_CASE_METHOD(OneStream, "Held launches come through, in their order, before anything else does",
                 "[submitter]") {
  const CUstream other = program.stream();
  program.submitter->use({.gathered = 8});
  program.warm(other);
  program.warm(on);
  std::function<void()> then;
  Calls behind;
  SECTION("another call") {
    then = [&] { program.submitter->hand_over(); };
  }
  SECTION("a launch on another stream") {
    then = [&] { (void)program.launch("scale", other); };
    behind = singles({{"scale", false}});
  }
  SECTION("a launch that cannot be held") {
    then = [&] { (void)program.launch("mapping", on); };
    behind = singles({{"mapping", false}});
  }
  SECTION("a launch with an attribute") {
    then = [&] { program.launch_with(priority(), "scale", on); };
    behind = singles({{"scale", false}});
  }
  SECTION("a stream that goes away") {
    then = [&] { program.submitter->forget_stream(); };
  }
  SECTION("kernels that go away") {
    then = [&] { program.submitter->forget_kernels(); };
  }
  SECTION("another way to submit") {
    then = [&] { program.submitter->use({.chained = true}); };
  }
  program.without_deadline([&] {
    program.submitter->use({.gathered = 8});
    if (program.submitter->totals().held == 0) program.warm(on);
    (void)program.take_calls();
    (void)program.launch("step", on);
    (void)program.launch("scale", on);
    (void)program.launch("step", on);
    const bool held = program.take_calls().empty();
    then();
    Calls wanted = singles({{"step", false}, {"scale", false}, {"step", false}});
    Calls as_graph = singles({{"graph", false}});  // where an earlier try was the first
    wanted.insert(wanted.end(), behind.begin(), behind.end());
    as_graph.insert(as_graph.end(), behind.begin(), behind.end());
    const Calls made = program.take_calls();
    program.warm(on);
    return held && (made == wanted || made == as_graph) && program.held() == 0;
  });
}

TEST_CASE_METHOD(OneStream, "The end of the program lets nothing be held any more", "[submitter]") {
  program.submitter->use({.gathered = 8});
  program.warm(on);
  (void)program.launch("step", on);
  program.submitter->stop();
  CHECK(program.take_calls().size() == 1);
  CHECK_FALSE(program.submitter->is_on());
  program.submitter->use({.chained = true, .gathered = 8});
  CHECK_FALSE(program.submitter->is_on());
  (void)program.launch("step", on);
  CHECK(program.take_calls() == singles({{"step", false}}));
  CHECK(program.held() == 0);
}

TEST_CASE_METHOD(OneStream, "Nothing of ours is in the driver any more once the program ends",
                 "[submitter]") {
  program.driver.cuGraphInstantiate = &instantiate_slowly;
  program.submitter->use({.gathered = 2});
  program.warm(on);
  launch_until(program, on, [&] { return is_instantiating.load(); });
  program.submitter->stop();
  CHECK_FALSE(is_instantiating);
}

TEST_CASE_METHOD(OneStream, "What nobody else hands over, our thread does", "[submitter]") {
  program.submitter->use({.gathered = 8});
  program.warm(on);
  (void)program.launch("step", on);
  (void)program.launch("scale", on);
  Calls made;
  wait_for([&] {
    const Calls more = program.take_calls();
    made.insert(made.end(), more.begin(), more.end());
    return made.size() == 2;
  });
  CHECK(made == Calls{{"step", false, true}, {"scale", false, true}});
  // Twice where it came in between.
  const auto late = program.submitter->totals().late;
  CHECK(late >= 1);
  CHECK(late <= 2);
}

TEST_CASE_METHOD(OneStream, "A launch that the driver would refuse is refused at the call",
                 "[submitter]") {
  program.submitter->use({.gathered = 8});
  program.warm(on);
  (void)program.launch("step", on);
  CHECK(program.launch("step", on, 1, 4096) == CUDA_ERROR_INVALID_VALUE);
  CHECK(program.launch_without_arguments("step", on) == CUDA_ERROR_INVALID_VALUE);
  CHECK(program.launch("step", on) == CUDA_SUCCESS);
}

TEST_CASE_METHOD(
    OneStream,
    "A launch with shared memory is accepted anew after an attribute of a kernel was set",
    "[submitter]") {
  program.submitter->use({.gathered = 8});
  const auto is_held_with = [&](unsigned shared_bytes) {
    const auto before = program.submitter->totals().held;
    (void)program.launch("step", on, 1, 32, shared_bytes);
    return program.submitter->totals().held > before;
  };
  for (int round = 0; round < 2; ++round) {
    CHECK_FALSE(is_held_with(1024));
    CHECK(is_held_with(1024));
    CHECK(is_held_with(0) == (round > 0));
    CHECK(is_held_with(0));
    program.submitter->forget_shapes();
  }
}

TEST_CASE("A batch that comes again is one graph, with the arguments of each call", "[submitter]") {
  Submitting program;
  const bool chained = GENERATE(false, true);
  const CUstream on = program.stream();
  program.driver.cuGraphExecKernelNodeSetParams = &count_node_set;
  program.submitter->use({.chained = chained, .gathered = 4});
  program.warm(on);
  float expected = 0;
  std::uint64_t graphs = 0;
  const auto batch = [&](std::initializer_list<float> factors) {
    int i = 0;
    for (const float factor : factors) {
      (void)program.launch(i++ % 2 == 0 ? "step" : "scale", on, factor);
      expected = expected * factor + 1;
    }
  };
  wait_for([&] {
    batch({1, 1, 1, 1});
    program.submitter->hand_over();
    return program.submitter->totals().graphs.built > 0;
  });
  const auto whole = [&](std::initializer_list<float> factors) {
    // Our thread may come in between: then it was no batch of four.
    for (int i = 0; i < 400; ++i) {
      (void)program.take_calls();
      const std::uint64_t set_before = nodes_set;
      batch(factors);
      program.synchronise();
      CHECK(program.result() == expected);
      if (program.take_calls() == singles({{"graph", false}})) {
        ++graphs;
        return nodes_set - set_before;
      }
      Submitting::rest();
    }
    FAIL("never a whole batch");
    return std::uint64_t{0};
  };
  (void)whole({1, 1, 1, 1});
  // Padding between arguments counts for nothing.
  CHECK(whole({1, 1, 1, 1}) == 0);
  CHECK(whole({1, 0.5F, 1, 1}) == 1);
  CHECK(whole({1, 1, 1, 0.25F}) == 2);
  CHECK(whole({2, 2, 2, 2}) == 4);
  CHECK(program.submitter->totals().graphs.launches >= graphs);
  program.submitter->forget_kernels();
  expected = expected + 1;
  (void)program.launch("step", on);
  program.synchronise();
  CHECK(program.result() == expected);
}

TEST_CASE_METHOD(OneStream, "Among more sequences than there are graphs all come out right",
                 "[submitter]") {
  program.submitter->use({.gathered = 8});
  program.warm(on);
  constexpr unsigned sequences = 72;
  constexpr std::size_t most_graphs = 64;
  float expected = 0;
  const auto round = [&] {
    for (unsigned one = 0; one < sequences; ++one) {
      for (unsigned i = 0; i < 8; ++i) {
        (void)program.launch((one >> i & 1U) != 0 ? "scale" : "step", on, 0.5F);
        expected = expected * 0.5F + 1;
      }
    }
    program.synchronise();
    CHECK(program.result() == expected);
  };
  // Where our thread came in between, a batch was not whole and is worth no graph yet.
  wait_for([&] {
    round();
    return program.submitter->totals().graphs.built > most_graphs;
  });
  round();
  round();
}

namespace {

/// Has a launch of `step` held, and waits until our thread has it half way to the driver, where it
/// stays until it is told to go on, or for so long.
void hand_over_slowly(Submitting& program, CUstream on, std::atomic<bool>& goes_on,
                      int most_milliseconds) {
  static std::atomic<bool> on_its_way{false};
  program.on_call = [&goes_on, most_milliseconds](const SubmittedCall& call) {
    if (call.kernel != "step" || !call.own) return;
    on_its_way = true;
    for (int i = 0; i < most_milliseconds && !goes_on; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
  constexpr int most_tries = 400;
  for (int i = 0; i < most_tries; ++i) {
    const auto before = program.submitter->totals().held;
    on_its_way = false;
    (void)program.launch("step", on);
    if (program.submitter->totals().held > before) {
      return wait_for([] { return on_its_way.load(); });
    }
    Submitting::rest();
    (void)program.take_calls();
  }
  FAIL("never held");
}

}  // namespace

TEST_CASE("A launch on the legacy stream does not overtake what is on its way on another",
          "[submitter]") {
  std::atomic<bool> goes_on{false};
  Submitting program;
  const bool legacy_first = GENERATE(false, true);
  const CUstream blocking = program.stream(CU_STREAM_DEFAULT);
  const CUstream first = legacy_first ? CU_STREAM_LEGACY : blocking;
  const CUstream second = legacy_first ? blocking : CU_STREAM_LEGACY;
  program.submitter->use({.gathered = 8});
  program.warm(second);
  program.warm(first);
  hand_over_slowly(program, first, goes_on, 50);
  (void)program.launch("scale", second);
  program.synchronise();
  const Calls made = program.take_calls();
  REQUIRE(made.size() == 2);
  CHECK(made[0].kernel == "step");
  CHECK(made[1].kernel == "scale");
}

TEST_CASE("Another call waits for what is on its way, whatever was launched meanwhile",
          "[submitter]") {
  std::atomic<bool> goes_on{false};
  Submitting program;
  const CUstream first = program.stream();
  const CUstream second = program.stream();
  program.submitter->use({.gathered = 8});
  program.warm(second);
  program.warm(first);
  hand_over_slowly(program, first, goes_on, 10'000);
  (void)program.launch("scale", second);  // overtakes, as it may
  CHECK(program.take_calls() == singles({{"scale", false}}));
  CHECK(program.held() == 1);
  goes_on = true;
  program.submitter->hand_over();
  CHECK(program.take_calls() == Calls{{"step", false, true}});
  CHECK(program.held() == 0);
}

TEST_CASE("No launch, and not the end, waits for a thread that the search has in the driver",
          "[submitter]") {
  StandingCall record;
  standing = &record;
  Submitting program;
  const CUstream full = program.stream();
  const CUstream on = program.stream();
  program.driver.cuEventRecord = &stand_at_record;
  program.tuning->start({true, {8, 16, 32}});
  const CUfunction step = program.function("step");
  const CUfunction scale = program.function("scale");
  const auto other = std::async(std::launch::async, [&] {
    (void)program.driver.cuCtxSetCurrent(Simulation::get().context);
    while (!record.goes_on) (void)program.launch_watched(step, full);
  });
  double seconds_left = -1;
  CHECK_FALSE(record.holds_up([&] {
    (void)program.driver.cuCtxSetCurrent(Simulation::get().context);
    (void)program.launch_watched(scale, on);
    program.tuning->results_may_be_there();
    seconds_left = program.tuning->seconds_left_for_loads();
    program.tuning->finish();
  }));
  CHECK(seconds_left == 0);
}

TEST_CASE("Nobody waits for graphs that are being destroyed", "[submitter]") {
  StandingCall destroy;
  standing = &destroy;
  Submitting program;
  const CUstream on = program.stream();
  program.submitter->use({.gathered = 2});
  program.warm(on);
  launch_until(program, on, [&] { return program.submitter->totals().graphs.built > 0; });
  program.synchronise();
  program.driver.cuGraphExecDestroy = &stand_at_destroy;
  const auto other = std::async(std::launch::async, [&] { program.submitter->forget_kernels(); });
  CHECK_FALSE(destroy.holds_up([&] { (void)program.submitter->totals(); }));
}

TEST_CASE_METHOD(OneStream, "That the driver makes no graph of a batch is said once",
                 "[submitter]") {
  program.submitter->use({.gathered = 2});
  std::string what;
  SECTION("a node") {
    program.driver.cuGraphAddKernelNode = [](auto...) { return CUDA_ERROR_INVALID_VALUE; };
    what = "cuGraphAddKernelNode";
  }
  SECTION("the whole graph") {
    program.driver.cuGraphInstantiate = [](auto...) { return CUDA_ERROR_INVALID_VALUE; };
    what = "cuGraphInstantiate";
  }
  SECTION("its launch") {
    program.driver.cuGraphLaunch = [](auto...) { return CUDA_ERROR_INVALID_VALUE; };
    what = "cuGraphLaunch";
  }
  program.warm(on);
  launch_until(program, on, [&] { return !program.not_gathered.empty(); });
  int more = 0;
  launch_until(program, on, [&] { return ++more >= 4; });
  program.synchronise();
  REQUIRE(program.not_gathered.size() == 1);
  CHECK(program.not_gathered.front().find(what) != std::string::npos);
  CHECK(program.not_gathered.front().find("CUDA_ERROR_INVALID_VALUE") != std::string::npos);
  CHECK(program.submitter->totals().single > 0);
}

TEST_CASE("Why launches are not gathered any more is said once", "[submitter]") {
  std::atomic<bool> goes_on{false};
  Submitting program;
  const CUstream on = program.stream();
  program.submitter->use({.gathered = 2});
  std::string why;
  SECTION("no thread keeps the deadline") {
    program.warm(on);
    const NoThreads none;
    (void)program.launch("step", on);
    why = "no thread could be started that keeps the deadline";
  }
  SECTION("no thread builds graphs") {
    program.warm(on);
    wait_for([&] {
      if (program.submitter->totals().held == 0) (void)program.launch("step", on);
      return program.submitter->totals().late > 0;  // its thread is there
    });
    wait_for([&] {
      Submitting::rest();
      const NoThreads none;
      (void)program.launch("step", on);
      (void)program.launch("scale", on);
      return !program.not_gathered.empty();
    });
    why = "no thread could be started that builds graphs";
  }
  SECTION("little device memory is left") {
    program.driver.cuMemGetInfo = [](std::size_t* free, std::size_t* total) {
      *free = GraphMemory::least_free_bytes - 1;
      *total = std::size_t{80} << 30;
      return CUDA_SUCCESS;
    };
    program.warm(on);
    launch_until(program, on, [&] { return !program.not_gathered.empty(); });
    why = "less than 256 MiB of device memory is left for its graphs";
  }
  SECTION("a stream that takes nothing") {
    program.warm(on);
    hand_over_slowly(program, on, goes_on, 10'000);
    program.submitter->hand_over();
    goes_on = true;
    why = "a stream has taken nothing for two seconds";
  }
  SECTION("functions that nobody watches") {
    program.unguarded = 1;
    why = "the program has obtained more functions of the driver";
  }
  program.synchronise();
  const auto before = program.submitter->totals().held;
  program.submitter->use({.gathered = 4});
  for (int i = 0; i < 3; ++i) (void)program.launch("step", on);
  CHECK(program.submitter->totals().held == before);
  REQUIRE(program.not_gathered.size() == 1);
  CHECK(program.not_gathered.front().find(why) != std::string::npos);
}

namespace {

constexpr std::chrono::milliseconds slowly{10};
CUresult CUDAAPI record_slowly(CUevent event, CUstream stream) {
  std::this_thread::sleep_for(slowly);
  return Simulation::get().driver.cuEventRecord(event, stream);
}
CUresult CUDAAPI instantiate_slowly_once(CUgraphExec* exec, CUgraph graph,
                                         unsigned long long flags) {
  std::this_thread::sleep_for(slowly);
  return Simulation::get().driver.cuGraphInstantiate(exec, graph, flags);
}

}  // namespace

TEST_CASE("All that the search takes is missing at loads, whatever it was taken for",
          "[submitter]") {
  SubmissionLimits limits;
  limits.max_slowdown = 0;
  limits.grace_seconds = 1000;
  Submitting program(Splice::Own, {}, limits);
  const CUstream on = program.stream();
  double least_seconds = std::chrono::duration<double>(slowly).count();
  SECTION("the beginning of the process") {
    program.tuning->start({true, {8}});
    program.tuning->spend(least_seconds);
  }
  SECTION("events between blocks") {
    program.tuning->start({true, {8}});
    program.driver.cuEventRecord = &record_slowly;
    for (int i = 0; i < 100; ++i) (void)program.launch_watched(program.function("step"), on);
  }
  SECTION("graphs of held launches") {
    program.driver.cuGraphInstantiate = &instantiate_slowly_once;
    program.submitter->use({.gathered = 2});
    program.warm(on);
    launch_until(program, on, [&] { return program.submitter->totals().graphs.built > 0; });
    program.tuning->start({true, {8}});
  }
  // A tenth is left to the blocks that tell.
  CHECK(program.tuning->seconds_left_for_loads() <= 0.9 * limits.grace_seconds - least_seconds);
}

TEST_CASE("Nothing is looked for before the program has launched enough itself, beside NCCL",
          "[submitter]") {
  Submitting program;
  const CUstream on = program.stream();
  const CUfunction step = program.function("step");
  const auto launch = [&](int times, bool by_nccl) {
    for (int i = 0; i < times; ++i) (void)program.launch_watched(step, on, by_nccl);
  };
  program.tuning->start({true, {8}});
  launch(63, false);
  launch(1000, true);
  launch(63, false);
  CHECK_FALSE(program.tuning->looks());
  CHECK(program.held() == 0);
  launch(1, false);
  CHECK(program.tuning->looks());
  CHECK(program.held() == 1);
}

TEST_CASE("The winner of an earlier run is used from the first launch, and looked at if in doubt",
          "[submitter]") {
  Submitting program;
  contextune::SubmissionState state;
  state.choices = {true, {8}};
  state.verdict.winner = {.gathered = 8};
  state.verdict.settled = true;
  const bool same_software = GENERATE(true, false);
  program.found_earlier(state, same_software);
  program.tuning->start({true, {8}});
  CHECK(program.tuning->looks() == !same_software);
  CHECK((program.log().find("reason=doubted_winner") != std::string::npos) == !same_software);
  const CUstream on = program.stream();
  // The first of a kernel is never held.
  for (int i = 0; i < 2; ++i) (void)program.launch_watched(program.function("step"), on);
  CHECK(program.held() == 1);
}

TEST_CASE("A program most of whose launches are NCCL's is not watched for long", "[submitter]") {
  Submitting program;
  const CUstream on = program.stream();
  program.tuning->start({true, {8}});
  for (int i = 0; i < 16383; ++i)
    (void)program.launch_watched(program.function("step"), on, i % 5 != 0);
  CHECK(program.tuning->watches());
  (void)program.launch_watched(program.function("step"), on, true);
  CHECK_FALSE(program.tuning->watches());
  CHECK_FALSE(program.tuning->looks());
  program.tuning->finish();
  CHECK(program.log().find("state=nccl") != std::string::npos);
  CHECK(program.log().find("nothing_repeats") == std::string::npos);
}

TEST_CASE("Four launches of graphs are enough for a look, and three are not", "[submitter]") {
  Submitting program;
  program.tuning->start({true, {8}});
  const GraphCall graph(contextune_fn_cuGraphLaunch, nullptr, program.stream());
  for (int i = 0; i < 3; ++i) program.tuning->launches_graph(graph);
  CHECK_FALSE(program.tuning->looks());
  program.tuning->launches_graph(graph);
  CHECK(program.tuning->looks());
}

TEST_CASE("Launches go out as the winner does while something else is being compared",
          "[submitter]") {
  SubmissionLimits limits;
  limits.grace_seconds = 1000;
  Submitting program(Splice::Own, {}, limits);
  const CUstream on = program.stream();
  const CUfunction step = program.function("step");
  program.tuning->start({true, {}});
  const auto launch = [&] {
    REQUIRE(program.launch_watched(step, on) == CUDA_SUCCESS);
    program.tuning->results_may_be_there();
    const Calls calls = program.take_calls();
    REQUIRE_FALSE(calls.empty());
    return calls.back().chained;
  };
  const auto last = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  bool tries = false;
  for (int i = 0; !tries && std::chrono::steady_clock::now() < last; ++i) {
    tries = launch();
    if (i % 16 == 0) program.synchronise();
  }
  REQUIRE(tries);
  program.tuning->hold_off();
  (void)launch();  // the entry may have begun
  for (int i = 0; i < 100; ++i) {
    program.tuning->hold_off();
    CHECK_FALSE(launch());
  }
}

TEST_CASE("Where looking for ways to launch cannot begin, the log says why", "[submitter]") {
  Submitting program;
  program.store_breaks = true;
  program.tuning->start({true, {8}});
  CHECK_FALSE(program.tuning->watches());
  CHECK(program.log().find("reason=internal_error region=auto site=launches "
                           "text=\"the store breaks\"") != std::string::npos);
}
