#include "program.hpp"

#include <nvtx3/nvToolsExt.h>

#include <algorithm>

#include "check.hpp"
#include "random.hpp"
#include "simulated_kernels.hpp"

Program::Program(const Plan& plan) : plan_(plan), memory_(plan) {
  for (const StreamKind kind : plan.streams) {
    CUstream stream = kind == StreamKind::PerThread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
    if (kind == StreamKind::Blocking || kind == StreamKind::NonBlocking) {
      const auto flags = kind == StreamKind::Blocking ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING;
      check(cuStreamCreate(&stream, flags), "cuStreamCreate");
    }
    streams_.push_back(stream);
  }
  events_.resize(plan.num_events);
  for (CUevent& event : events_) {
    check(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
  }
  check(cuMemAlloc_v2(&spare_, 1000), "cuMemAlloc");
  check(cuMemsetD8_v2(spare_, 0, 1000), "cuMemsetD8");
  for (const GraphPlan& graph : plan.graphs) graphs_.push_back(make_graph(graph));
  check(cuCtxSynchronize(), "cuCtxSynchronize");
  reset_unstable_kernels();
}

Program::~Program() {
  check(cuCtxSynchronize(), "cuCtxSynchronize");
  for (const CUgraphExec one : graphs_) check(cuGraphExecDestroy(one), "cuGraphExecDestroy");
  if (spare_ != 0) check(cuMemFree_v2(spare_), "cuMemFree");
  for (const CUevent event : events_) check(cuEventDestroy_v2(event), "cuEventDestroy");
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    const StreamKind kind = plan_.streams[i];
    if (kind == StreamKind::Blocking || kind == StreamKind::NonBlocking) {
      check(cuStreamDestroy_v2(streams_[i]), "cuStreamDestroy");
    }
  }
}

void Program::begin() {
  if (plan_.waits_between) return;
  for (const Action& action : plan_.between) carry_out(action);
}

void Program::visit() {
  ++visits_;
  nvtxRangePushA(region_name(plan_.seed).c_str());
  for (const Action& action : plan_.region) carry_out(action);
  if (around_end != nullptr) around_end(true);
  nvtxRangePop();
  if (around_end != nullptr) around_end(false);
  for (const Action& action : plan_.between) carry_out(action);
  tidy_up();
}

void Program::tidy_up() {
  for (const CUdeviceptr one : allocated_) check(cuMemFree_v2(one), "cuMemFree");
  allocated_.clear();
  for (const CUmodule one : loaded_) unload(one);
  loaded_.clear();
  if (spare_ == 0) check(cuMemAlloc_v2(&spare_, 1000), "cuMemAlloc");
  for (const auto& one : results_) on_host_ = add_to_digest(on_host_, one.data(), one.size());
  results_.clear();
}

std::uint64_t Program::digest() const {
  const std::uint64_t memory = memory_.digest();
  return add_to_digest(on_host_, &memory, sizeof memory);
}

CUstream Program::stream(const Action& action) const {
  const StreamKind kind = plan_.streams[action.stream];
  const bool is_default =
      kind == (action.per_thread_call ? StreamKind::PerThread : StreamKind::Legacy);
  return is_default ? nullptr : streams_[action.stream];
}

CUfunction Program::function(const Action& action) {
  const std::string name = kernel_name(action.family, action.flavour);
  CUfunction& found = functions_[{action.module, name}];
  if (found == nullptr) {
    check(cuModuleGetFunction(&found, memory_.module(action.module), name.c_str()), name.c_str());
  }
  return found;
}

void Program::carry_out(const Action& action) {
  using Kind = Action::Kind;
  const bool is_first = visits_ == 1 || !plan_.only_first_visit;
  switch (action.kind) {
    case Kind::Kernel:
      return launch(action);
    case Kind::HostToDevice:
      return copy_from_host(action);
    case Kind::DeviceToDevice:
      return copy_on_device(action);
    case Kind::DeviceToHost:
      return copy_to_host(action);
    case Kind::Set:
      return set(action);
    case Kind::Record:
      return check(calls(action).record(events_[action.event], stream(action)), "cuEventRecord");
    case Kind::Wait:
      return check(calls(action).wait(stream(action), events_[action.event], 0),
                   "cuStreamWaitEvent");
    case Kind::SynchroniseStream:
      return check(calls(action).synchronise(stream(action)), "cuStreamSynchronize");
    case Kind::SynchroniseEvent:
      return check(cuEventSynchronize(events_[action.event]), "cuEventSynchronize");
    case Kind::SynchroniseAll:
      return check(cuCtxSynchronize(), "cuCtxSynchronize");
    case Kind::Query:
      (void)calls(action).query(stream(action));
      (void)cuEventQuery(events_[action.event]);
      return;
    case Kind::WritePinned: {
      Random random(action.value + visits_);
      for (std::uint32_t i = 0; i < plan_.pinned[action.pinned].words; ++i) {
        memory_.pinned(action.pinned)[i] = static_cast<std::uint32_t>(random.bits());
      }
      return;
    }
    case Kind::WriteResults:
      return write_results(action);
    case Kind::HostFunction:
      return check(calls(action).launch_host_function(
                       stream(action), [](void*) {}, nullptr),
                   "cuLaunchHostFunc");
    case Kind::WaitValue:
      return wait_for_value(action);
    case Kind::Allocate:
      if (!is_first) return;
      return check(cuMemAlloc_v2(&allocated_.emplace_back(), 5000), "cuMemAlloc");
    case Kind::Release:
      if (!is_first) return;
      check(cuMemFree_v2(spare_), "cuMemFree");
      spare_ = 0;
      return;
    case Kind::LoadModule:
      return load_module(action);
    case Kind::OtherThread:
      return launch_elsewhere(action);
    case Kind::KernelOnHost:
      return launch(action);
    case Kind::CopyWithPitch:
      return copy_with_pitch(action);
    case Kind::Graph:
      return check(calls(action).launch_graph(graphs_[action.graph], stream(action)),
                   "cuGraphLaunch");
    case Kind::Capture:
      return capture(action);
  }
}

void Program::fill_call(KernelCall& call, const Action& action) const {
  if (action.kind == Action::Kind::KernelOnHost) {
    call.add(plan_.pinned[action.pinned].words)
        .add(reinterpret_cast<CUdeviceptr>(memory_.pinned(action.pinned)))
        .add(std::uint64_t{0});
    return;
  }
  const CUdeviceptr table = memory_.buffer(plan_.table_buffer);
  const CUdeviceptr from = memory_.buffer(action.from);
  const CUdeviceptr to = memory_.buffer(action.to);
  const std::uint32_t n = action.words;
  switch (action.family) {
    case Family::Twist:
    case Family::Recall:
      call.add(n).add(to);
      break;
    case Family::Mix:
    case Family::Count:
      call.add(n).add(from).add(to);
      break;
    case Family::Job:
      call.add(Job{static_cast<std::uint8_t>(action.value), 3,
                   reinterpret_cast<const std::uint32_t*>(from), n,
                   reinterpret_cast<std::uint32_t*>(to)});
      break;
    case Family::Through:
      call.add(table)
          .add(static_cast<std::uint32_t>(action.from))
          .add(static_cast<std::uint32_t>(action.to))
          .add(n);
      break;
    case Family::Shuffle:
      call.add(table)
          .add(static_cast<std::uint32_t>(action.from))
          .add(static_cast<std::uint32_t>(action.to));
      return;
    case Family::Tally:
      call.add(n).add(from);
      break;
    case Family::Odd:
      call.add(static_cast<std::uint8_t>(action.value))
          .add(static_cast<double>(action.value))
          .add(static_cast<std::uint16_t>(action.value))
          .add(to)
          .add(static_cast<std::uint8_t>(action.value + 1))
          .add(n);
      break;
    case Family::Clear:
      call.add(n).add(to);
      break;
    case Family::Leave:
    case Family::Unstable:
      call.add(n).add(to);
      return;
  }
  call.add(disguised(memory_.memory(action.victim_memory) + action.victim_byte));
}

void Program::launch(const Action& action) {
  KernelCall call(function(action));
  fill_call(call, action);
  check(call.launch(calls(action), action.form, action.grid, action.block, stream(action)),
        "a launch");
}
