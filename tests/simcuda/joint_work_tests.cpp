#include "session.hpp"

namespace {

// Work whose other processes are played by the test.
struct Joint {
  double arrival = -1;
  bool others_are_there = false;
  double end = 0;
  float* output = nullptr;
  int posts = 0, finishes = 0, releases = 0;

  [[nodiscard]] simcuda_joint_work work() {
    simcuda_joint_work work{};
    work.arrive = [](void* data, double start) { static_cast<Joint*>(data)->arrival = start; };
    work.may_post = [](void*) { return 1; };
    work.post = [](void* data) { ++static_cast<Joint*>(data)->posts; };
    work.may_finish = [](void* data, double* at) {
      *at = static_cast<Joint*>(data)->end;
      return static_cast<Joint*>(data)->others_are_there ? 1 : 0;
    };
    work.finish = [](void* data) {
      auto& self = *static_cast<Joint*>(data);
      ++self.finishes;
      if (self.output != nullptr) *self.output = 7.0F;
    };
    work.release = [](void* data) { ++static_cast<Joint*>(data)->releases; };
    work.data = this;
    work.name = "joint";
    work.blocks = 4;
    work.threads = 512;
    return work;
  }
};

}  // namespace

TEST_CASE("What follows joint work on a stream waits for it, and other streams do not",
          "[joint_work]") {
  Session session;
  CUstream stream = nullptr, other = nullptr;
  CUevent before = nullptr, after = nullptr;
  SUCCEEDS(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  SUCCEEDS(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  SUCCEEDS(cuEventCreate(&before, 0));
  SUCCEEDS(cuEventCreate(&after, 0));
  const CUdeviceptr data = session.memory(8);
  Joint joint;
  joint.output = reinterpret_cast<float*>(data);
  const simcuda_joint_work work = joint.work();

  SUCCEEDS(cuEventRecord(before, stream));
  REQUIRE(simcuda_enqueue_joint_work(session.context, stream, &work) == CUDA_SUCCESS);
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

TEST_CASE("A stream that waits for an event behind joint work gets its time too", "[joint_work]") {
  Session session;
  CUstream stream = nullptr, follower = nullptr;
  CUevent event = nullptr, last = nullptr;
  SUCCEEDS(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  SUCCEEDS(cuStreamCreate(&follower, CU_STREAM_NON_BLOCKING));
  SUCCEEDS(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  SUCCEEDS(cuEventCreate(&last, 0));
  Joint joint;
  const simcuda_joint_work work = joint.work();
  REQUIRE(simcuda_enqueue_joint_work(session.context, stream, &work) == CUDA_SUCCESS);
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
  Session session;
  CUstream blocking = nullptr;
  CUevent last = nullptr;
  SUCCEEDS(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  SUCCEEDS(cuEventCreate(&last, 0));
  const CUdeviceptr data = session.memory(8);
  Joint joint;
  joint.output = reinterpret_cast<float*>(data);
  const simcuda_joint_work work = joint.work();
  REQUIRE(simcuda_enqueue_joint_work(session.context, blocking, &work) == CUDA_SUCCESS);
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
    Session session;
    const simcuda_joint_work work = joint.work();
    REQUIRE(simcuda_enqueue_joint_work(session.context, nullptr, &work) == CUDA_SUCCESS);
  }
  CHECK(joint.finishes == 0);
  CHECK(joint.releases == 1);
}

TEST_CASE("Joint work cannot be captured", "[joint_work]") {
  Session session;
  CUstream stream = nullptr;
  SUCCEEDS(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  SUCCEEDS(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  Joint joint;
  const simcuda_joint_work work = joint.work();
  CHECK(simcuda_enqueue_joint_work(session.context, stream, &work) ==
        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(joint.releases == 1);
}
