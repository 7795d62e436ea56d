#include <chrono>

#include "session.hpp"

namespace {

using Clock = std::chrono::steady_clock;

// Work whose other processes are played by the test.
struct Joint {
  double arrival = -1;
  bool others_are_there = false;
  Clock::time_point others_come{};  // with others_are_there
  double end = 0;
  float* output = nullptr;
  int begun = 0, posts = 0, looks = 0, finishes = 0, releases = 0;
  CUresult refusal = CUDA_SUCCESS;
};

Joint& joint_of(void* data) {
  return *static_cast<Joint*>(data);
}

int join(const simcuda_launch* launch, simcuda_joint_work* work) {
  auto* const joint = simcuda::argument<Joint*>(*launch, 0);
  if (joint->refusal != CUDA_SUCCESS) return joint->refusal;
  ++joint->begun;
  work->arrive = [](void* data, double start) { joint_of(data).arrival = start; };
  work->may_post = [](void*) { return 1; };
  work->post = [](void* data) { ++joint_of(data).posts; };
  work->may_finish = [](void* data, double* at) {
    Joint& self = joint_of(data);
    ++self.looks;
    *at = self.end;
    return self.others_are_there && Clock::now() >= self.others_come ? 1 : 0;
  };
  work->finish = [](void* data) {
    Joint& self = joint_of(data);
    ++self.finishes;
    if (self.output != nullptr) *self.output += 7.0F;
  };
  work->release = [](void* data) { ++joint_of(data).releases; };
  work->data = joint;
  return CUDA_SUCCESS;
}

const simcuda_kernel joint_kernel = simcuda::joint_kernel<Joint*>("joint", &join);
const simcuda_kernel* const kernels[] = {&joint_kernel};

class JointSession : public Session {
 public:
  JointSession() {
    static const simcuda_kernel_table table{SIMCUDA_VERSION, kernels, 1};
    REQUIRE(simcuda_register_kernels(&table) == 0);
    CUmodule joints = nullptr;
    REQUIRE(cuModuleLoadData(&joints, "simcuda image 1\nkernel joint\n") == CUDA_SUCCESS);
    REQUIRE(cuModuleGetFunction(&kernel_, joints, "joint") == CUDA_SUCCESS);
  }
  [[nodiscard]] CUresult enqueue(Joint& joint, CUstream stream) const {
    Joint* at = &joint;
    return launch(kernel_, 4, 512, {&at}, 0, stream);
  }

 private:
  CUfunction kernel_ = nullptr;
};

}  // namespace

TEST_CASE("What follows joint work on a stream waits for it, and other streams do not",
          "[joint_work]") {
  JointSession session;
  CUstream stream = nullptr, other = nullptr;
  CUevent before = nullptr, after = nullptr;
  SUCCEEDS(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  SUCCEEDS(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  SUCCEEDS(cuEventCreate(&before, 0));
  SUCCEEDS(cuEventCreate(&after, 0));
  const CUdeviceptr data = session.memory(8);
  Joint joint;
  joint.output = reinterpret_cast<float*>(data);

  SUCCEEDS(cuEventRecord(before, stream));
  SUCCEEDS(session.enqueue(joint, stream));
  SUCCEEDS(cuMemcpyDtoDAsync(data + 4, data, 4, stream));
  SUCCEEDS(cuEventRecord(after, stream));
  CHECK(joint.posts == 1);
  CHECK(joint.arrival > 0);
  for (int i = 0; i < 1000; ++i) REQUIRE(cuEventQuery(after) == CUDA_ERROR_NOT_READY);
  CHECK(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
  SUCCEEDS(cuStreamSynchronize(other));
  SUCCEEDS(cuEventSynchronize(before));

  joint.end = joint.arrival + 5e-3;
  joint.others_are_there = true;
  SUCCEEDS(cuEventSynchronize(after));
  CHECK(joint.finishes == 1);
  CHECK(joint.releases == 1);
  CHECK(session.floats(data, 2) == std::vector<float>{7.0F, 7.0F});
  CHECK(simcuda_host_time() > joint.end);
  float milliseconds = 0;
  SUCCEEDS(cuEventElapsedTime(&milliseconds, before, after));
  CHECK(milliseconds > 5.0F);
  CHECK(milliseconds < 5.1F);
}

TEST_CASE("Who waits for other processes looks less often the longer it waits", "[joint_work]") {
  JointSession session;
  CUstream stream = nullptr;
  SUCCEEDS(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  Joint joint;
  joint.others_are_there = true;
  joint.others_come = Clock::now() + std::chrono::milliseconds(200);
  SUCCEEDS(session.enqueue(joint, stream));
  SUCCEEDS(cuStreamSynchronize(stream));
  CHECK(joint.finishes == 1);
  // The others need the processors. It is some 100 times, and on a busy machine fewer.
  CHECK(joint.looks < 300);
}

TEST_CASE("A stream that waits for an event behind joint work gets its time too", "[joint_work]") {
  JointSession session;
  CUstream stream = nullptr, follower = nullptr;
  CUevent event = nullptr, last = nullptr;
  SUCCEEDS(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  SUCCEEDS(cuStreamCreate(&follower, CU_STREAM_NON_BLOCKING));
  SUCCEEDS(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  SUCCEEDS(cuEventCreate(&last, 0));
  Joint joint;
  SUCCEEDS(session.enqueue(joint, stream));
  SUCCEEDS(cuEventRecord(event, stream));
  SUCCEEDS(cuStreamWaitEvent(follower, event, 0));
  SUCCEEDS(cuEventDestroy(event));
  SUCCEEDS(cuEventRecord(last, follower));
  CHECK(cuEventQuery(last) == CUDA_ERROR_NOT_READY);

  joint.end = joint.arrival + 1e-3;
  joint.others_are_there = true;
  SUCCEEDS(cuStreamSynchronize(follower));
  CHECK(simcuda_host_time() > joint.end);
  SUCCEEDS(cuEventQuery(last));
}

TEST_CASE("The legacy stream waits for joint work on a blocking stream", "[joint_work]") {
  JointSession session;
  CUstream blocking = nullptr;
  CUevent last = nullptr;
  SUCCEEDS(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  SUCCEEDS(cuEventCreate(&last, 0));
  const CUdeviceptr data = session.memory(8);
  Joint joint;
  joint.output = reinterpret_cast<float*>(data);
  SUCCEEDS(session.enqueue(joint, blocking));
  SUCCEEDS(cuMemcpyDtoDAsync(data + 4, data, 4, nullptr));
  SUCCEEDS(cuEventRecord(last, nullptr));
  CHECK(cuEventQuery(last) == CUDA_ERROR_NOT_READY);

  joint.end = joint.arrival + 1e-3;
  joint.others_are_there = true;
  SUCCEEDS(cuEventSynchronize(last));
  CHECK(simcuda_host_time() > joint.end);
  CHECK(session.floats(data, 2) == std::vector<float>{7.0F, 7.0F});
}

TEST_CASE("Joint work is released with its context, whether or not it ended", "[joint_work]") {
  Joint joint;
  {
    JointSession session;
    SUCCEEDS(session.enqueue(joint, nullptr));
  }
  CHECK(joint.finishes == 0);
  CHECK(joint.releases == 1);
}

TEST_CASE("Joint work that cannot begin is a launch that fails", "[joint_work]") {
  JointSession session;
  Joint joint;
  joint.refusal = CUDA_ERROR_INVALID_VALUE;
  CHECK(session.enqueue(joint, nullptr) == CUDA_ERROR_INVALID_VALUE);
  SUCCEEDS(cuStreamSynchronize(nullptr));
  CHECK(joint.releases == 0);
}

TEST_CASE("Captured joint work begins anew at each launch of the graph", "[joint_work]") {
  JointSession session;
  CUstream stream = nullptr;
  SUCCEEDS(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  const CUdeviceptr data = session.memory(8);
  Joint joint;
  joint.output = reinterpret_cast<float*>(data);

  SUCCEEDS(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  SUCCEEDS(session.enqueue(joint, stream));
  SUCCEEDS(cuMemcpyDtoDAsync(data + 4, data, 4, stream));
  CUgraph graph = nullptr;
  SUCCEEDS(cuStreamEndCapture(stream, &graph));
  CUgraphExec executable = nullptr;
  SUCCEEDS(cuGraphInstantiate(&executable, graph, 0));
  CHECK(joint.begun == 0);

  for (int launch = 1; launch <= 2; ++launch) {
    joint.others_are_there = false;
    SUCCEEDS(cuGraphLaunch(executable, stream));
    CHECK(joint.begun == launch);
    CHECK(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
    joint.end = joint.arrival + 1e-3;
    joint.others_are_there = true;
    SUCCEEDS(cuStreamSynchronize(stream));
    CHECK(simcuda_host_time() > joint.end);
    CHECK(joint.releases == launch);
    const auto sum = static_cast<float>(7 * launch);
    CHECK(session.floats(data, 2) == std::vector<float>{sum, sum});
  }
}

TEST_CASE("A graph with joint work waits for its launch on another stream", "[joint_work]") {
  JointSession session;
  CUstream first = nullptr, second = nullptr;
  SUCCEEDS(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
  SUCCEEDS(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
  Joint joint;
  SUCCEEDS(cuStreamBeginCapture(first, CU_STREAM_CAPTURE_MODE_GLOBAL));
  SUCCEEDS(session.enqueue(joint, first));
  CUgraph graph = nullptr;
  SUCCEEDS(cuStreamEndCapture(first, &graph));
  CUgraphExec executable = nullptr;
  SUCCEEDS(cuGraphInstantiate(&executable, graph, 0));

  SUCCEEDS(cuGraphLaunch(executable, first));
  SUCCEEDS(cuGraphLaunch(executable, second));
  CHECK(joint.posts == 1);
  joint.others_are_there = true;
  SUCCEEDS(cuStreamSynchronize(second));
  CHECK(joint.posts == 2);
  CHECK(joint.finishes == 2);
}
