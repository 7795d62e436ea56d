// See submission_children.hpp. Compiled as relocatable code and linked with the device's runtime.
#include "submission_children.hpp"

#include "submission_checks.cuh"

namespace {

struct Task {
  const unsigned* in;
  unsigned* out;
  unsigned long long* wrong;
  unsigned round;
};

__device__ Task graph_task;

__device__ __forceinline__ void perform(const Task& task) {
  unsigned found = 0;
  for (unsigned i = threadIdx.x; i < num_words; i += blockDim.x)
    found += through_ca(task.in + i) != task.round;
  count(found, task.wrong);
  if (!is_last_block(task.round)) return;
  linger_for(10'000);
  for (unsigned i = threadIdx.x; i < num_words; i += blockDim.x) task.out[i] = task.round;
}

__global__ void child(Task task) {
  perform(task);
}

__global__ void child_of_graph() {
  perform(graph_task);
}

__global__ void parent(Child kind, Task task) {
  if (threadIdx.x != 0 || blockIdx.x != gridDim.x - 1) return;
  switch (kind) {
    case Child::Waits:
      child<<<16, 128>>>(task);
      break;
    case Child::Tail:
      child<<<16, 128, 0, cudaStreamTailLaunch>>>(task);
      break;
    case Child::ForgetsIt:
      child<<<16, 128, 0, cudaStreamFireAndForget>>>(task);
      break;
    default:
      break;
  }
}

__global__ void parent_of_graph(Task task, cudaGraphExec_t graph) {
  if (threadIdx.x != 0 || blockIdx.x != gridDim.x - 1) return;
  graph_task = task;
  __threadfence();
  (void)cudaGraphLaunch(graph, cudaStreamGraphFireAndForget);
}

/// Only a kernel of a graph may launch a graph.
class Graphs {
 public:
  Graphs() {
    cudaGraph_t inner = nullptr;
    CUDA_CHECK(cudaGraphCreate(&inner, 0));
    cudaKernelNodeParams params{};
    params.func = reinterpret_cast<void*>(&child_of_graph);
    params.gridDim = dim3(16);
    params.blockDim = dim3(128);
    cudaGraphNode_t node = nullptr;
    CUDA_CHECK(cudaGraphAddKernelNode(&node, inner, nullptr, 0, &params));
    CUDA_CHECK(cudaGraphInstantiate(&inner_, inner, cudaGraphInstantiateFlagDeviceLaunch));
    CUDA_CHECK(cudaGraphUpload(inner_, nullptr));
    CUDA_CHECK(cudaDeviceSynchronize());
    CUDA_CHECK(cudaGraphCreate(&outer_, 0));
    Task none{};
    Parameters parameters(none, inner_);
    CUDA_CHECK(cudaGraphAddKernelNode(&node_, outer_, nullptr, 0, &parameters.node));
    CUDA_CHECK(cudaGraphInstantiate(&exec_, outer_, 0));
  }

  void launch(const Task& task, cudaStream_t stream) {
    Parameters parameters(task, inner_);
    CUDA_CHECK(cudaGraphExecKernelNodeSetParams(exec_, node_, &parameters.node));
    CUDA_CHECK(cudaGraphLaunch(exec_, stream));
  }

 private:
  struct Parameters {
    Parameters(const Task& task, cudaGraphExec_t graph) : task_(task), graph_(graph) {
      node.func = reinterpret_cast<void*>(&parent_of_graph);
      node.gridDim = dim3(4);
      node.blockDim = dim3(64);
      node.kernelParams = pointers_;
    }
    cudaKernelNodeParams node{};

   private:
    Task task_;
    cudaGraphExec_t graph_;
    void* pointers_[2] = {&task_, &graph_};
  };

  cudaGraphExec_t inner_ = nullptr, exec_ = nullptr;
  cudaGraph_t outer_ = nullptr;
  cudaGraphNode_t node_ = nullptr;
};

}  // namespace

void launch_parent(Child kind, cudaStream_t stream, const unsigned* in, unsigned* out,
                   unsigned long long* wrong, unsigned round) {
  const Task task{in, out, wrong, round};
  if (kind == Child::Graph) {
    static Graphs graphs;
    graphs.launch(task, stream);
    return;
  }
  launch(false, stream, 4, 64, parent, kind, task);
}
