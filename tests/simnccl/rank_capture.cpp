// Collectives in graphs.
#include <cstring>

#include "rank.hpp"

namespace {

constexpr std::size_t elements = 4096;

void say(const char* what) {
  std::printf("%s\n", what);
}

// The sum of all ranks' numbers, then, on a second stream, what everybody got of it.
CUgraph capture(const Rank& rank, CUstream second, const Buffer<int>& numbers,
                const Buffer<int>& sum, const Buffer<int>& gathered) {
  CUevent fork = nullptr, join = nullptr;
  EXPECT(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
  EXPECT(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
  EXPECT(cuStreamBeginCapture(rank.stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
  EXPECT(ncclAllReduce(numbers.data(), sum.data(), elements, ncclInt32, ncclSum, rank.comm,
                       rank.stream) == ncclSuccess);
  EXPECT(cuEventRecord(fork, rank.stream) == CUDA_SUCCESS);
  EXPECT(cuStreamWaitEvent(second, fork, 0) == CUDA_SUCCESS);
  EXPECT(ncclAllGather(sum.data(), gathered.data(), elements, ncclInt32, rank.comm, second) ==
         ncclSuccess);
  EXPECT(cuEventRecord(join, second) == CUDA_SUCCESS);
  EXPECT(cuStreamWaitEvent(rank.stream, join, 0) == CUDA_SUCCESS);
  EXPECT(ncclGroupStart() == ncclSuccess);
  EXPECT(ncclSend(sum.data(), elements, ncclInt32, (rank.rank + 1) % rank.ranks, rank.comm,
                  rank.stream) == ncclSuccess);
  EXPECT(ncclRecv(numbers.data(), elements, ncclInt32, (rank.rank + rank.ranks - 1) % rank.ranks,
                  rank.comm, rank.stream) == ncclSuccess);
  EXPECT(ncclGroupEnd() == ncclSuccess);
  CUgraph graph = nullptr;
  EXPECT(cuStreamEndCapture(rank.stream, &graph) == CUDA_SUCCESS);
  return graph;
}

CUgraphExec executable_of(CUgraph graph) {
  CUgraphExec executable = nullptr;
  EXPECT(cuGraphInstantiate(&executable, graph, 0) == CUDA_SUCCESS);
  return executable;
}

}  // namespace

void captured(Rank& rank) {
  rank.join();
  CUstream second = nullptr;
  EXPECT(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  const Buffer<int> numbers(elements, rank.rank + 1), sum(elements),
      gathered(elements * static_cast<std::size_t>(rank.ranks));
  say("capture");
  const CUgraph graph = capture(rank, second, numbers, sum, gathered);
  EXPECT(numbers.read()[0] == rank.rank + 1);
  const CUgraphExec executable = executable_of(graph);
  say("launch");
  int expected = 0;
  for (int r = 0; r < rank.ranks; ++r) expected += r + 1;
  for (int launch = 0; launch < 3; ++launch) {
    EXPECT(cuGraphLaunch(executable, rank.stream) == CUDA_SUCCESS);
    rank.wait();
    EXPECT(sum.read()[elements - 1] == expected);
    EXPECT(gathered.read().back() == expected);
    EXPECT(numbers.read()[1] == expected);
    expected *= rank.ranks;
  }
  say("call");
  EXPECT(ncclAllReduce(numbers.data(), sum.data(), elements, ncclInt32, ncclSum, rank.comm,
                       rank.stream) == ncclSuccess);
  rank.wait();
  EXPECT(sum.read()[0] == expected);
  EXPECT(ncclCommDestroy(rank.comm) == ncclSuccess);
}

// One stretch of a graph, as a tool sees it that wraps the driver.
void captured_kernel(Rank& rank) {
  rank.join();
  const Buffer<float> data(elements, 1.0F);
  EXPECT(cuStreamBeginCapture(rank.stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
  EXPECT(ncclAllReduce(data.data(), data.data(), elements, ncclFloat32, ncclSum, rank.comm,
                       rank.stream) == ncclSuccess);
  CUgraph graph = nullptr;
  EXPECT(cuStreamEndCapture(rank.stream, &graph) == CUDA_SUCCESS);
  CUgraphNode node = nullptr;
  std::size_t nodes = 1;
  EXPECT(cuGraphGetNodes(graph, &node, &nodes) == CUDA_SUCCESS && nodes == 1);
  CUDA_KERNEL_NODE_PARAMS kernel{};
  EXPECT(cuGraphKernelNodeGetParams(node, &kernel) == CUDA_SUCCESS);
  const char* name = nullptr;
  EXPECT(cuKernelGetName(&name, kernel.kern == nullptr ? reinterpret_cast<CUkernel>(kernel.func)
                                                       : kernel.kern) == CUDA_SUCCESS);
  EXPECT(std::strcmp(name,
                     "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL"
                     "24ncclDevKernelArgsStorageILm4096EE") == 0);
  EXPECT(ncclCommDestroy(rank.comm) == ncclSuccess);
  say("ended");
  std::fflush(stdout);
  // Undefined with the real library; here it says so.
  (void)cuGraphLaunch(executable_of(graph), rank.stream);
}
