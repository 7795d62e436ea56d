#include "group_launch.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "current_context.hpp"
#include "reduction.hpp"

namespace simnccl {

namespace {

auto kind_of(const Collective& one) {
  return std::make_tuple(one.function, one.op, one.type, one.root);
}

DecidedPlan decide(const LaunchPlan& plan) {
  DecidedPlan decided{&plan, {}};
  const Communicator& comm = *plan.comm;
  if (comm.ranks() == 1) {  // nobody is asked about a copy
    for (const Collective& one : plan.collectives)
      if (one.scale) decided.bins.push_back({{one}, {}});
    return decided;
  }
  for (auto& bin : bins_of(plan.collectives, comm.ranks())) {
    Workload work{bin.front().function, 0, comm.ranks()};
    for (const Collective& one : bin) work.bytes += bytes_of_collective(one, comm.ranks());
    const Decision decision = comm.tuner().decide(comm.rank(), work, static_cast<int>(bin.size()));
    decided.bins.push_back({std::move(bin), decision});
  }
  return decided;
}

void check(CUresult result) {
  require(result == CUDA_SUCCESS, ncclUnhandledCudaError, "the driver refused a call");
}

/// Makes `later` wait for what is on `earlier`.
void order_streams(CUstream earlier, CUstream later) {
  CUevent event = nullptr;
  check(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  check(cuEventRecord(event, earlier));
  check(cuStreamWaitEvent(later, event, 0));
  check(cuEventDestroy(event));
}

std::vector<CUstream> streams_of(const LaunchPlan& plan) {
  std::vector<CUstream> streams;
  const auto add = [&](CUstream stream) {
    if (std::find(streams.begin(), streams.end(), stream) == streams.end())
      streams.push_back(stream);
  };
  for (const Collective& one : plan.collectives) add(one.stream);
  for (const Message& one : plan.messages) add(one.stream);
  return streams;
}

void copy_alone(const Collective& one) {
  if (one.send == one.receive) return;
  const std::size_t bytes = one.count * element_bytes(one.type);
  check(cuMemcpyDtoDAsync(reinterpret_cast<CUdeviceptr>(one.receive),
                          reinterpret_cast<CUdeviceptr>(one.send), bytes, one.stream));
}

}  // namespace

std::vector<std::vector<Collective>> bins_of(std::vector<Collective> collectives, int ranks) {
  std::stable_sort(collectives.begin(), collectives.end(),
                   [ranks](const Collective& a, const Collective& b) {
                     if (kind_of(a) != kind_of(b)) return kind_of(a) < kind_of(b);
                     return bytes_of_collective(a, ranks) > bytes_of_collective(b, ranks);
                   });
  std::vector<std::vector<Collective>> bins;
  for (const Collective& one : collectives) {
    const bool fits =
        !bins.empty() && kind_of(bins.back().front()) == kind_of(one) &&
        bytes_of_collective(bins.back().front(), ranks) <= 4 * bytes_of_collective(one, ranks);
    if (!fits) bins.emplace_back();
    bins.back().push_back(one);
  }
  return bins;
}

std::vector<DecidedPlan> prepare(
    const std::vector<LaunchPlan>& plans,
    const std::function<void(const std::vector<std::function<void()>>&)>& run_together) {
  std::vector<DecidedPlan> decided;
  for (const LaunchPlan& plan : plans) decided.push_back(decide(plan));
  std::vector<std::function<void()>> connections;
  for (const DecidedPlan& one : decided)
    if (!one.bins.empty() && one.plan->comm->ranks() > 1)
      connections.emplace_back([&one] {
        for (const DecidedPlan::Bin& bin : one.bins)
          one.plan->comm->connect(bin.decision.algorithm);
      });
  if (!connections.empty()) run_together(connections);
  return decided;
}

void enqueue(const DecidedPlan& decided) {
  const LaunchPlan& plan = *decided.plan;
  const std::vector<CUstream> streams = streams_of(plan);
  if (streams.empty()) return;
  const CurrentContext current(plan.comm->plan().context);
  // All goes to the first stream, and the others wait for it.
  for (std::size_t i = 1; i < streams.size(); ++i) order_streams(streams[i], streams[0]);
  if (plan.comm->ranks() == 1)
    for (const Collective& one : plan.collectives)
      if (!one.scale) copy_alone(one);
  for (const DecidedPlan::Bin& bin : decided.bins)
    enqueue_collectives(plan.comm, bin.collectives, bin.decision, streams[0]);
  if (!plan.messages.empty()) enqueue_messages(plan.comm, plan.messages, streams[0]);
  for (std::size_t i = 1; i < streams.size(); ++i) order_streams(streams[0], streams[i]);
}

}  // namespace simnccl
