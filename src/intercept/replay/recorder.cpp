#include "intercept/replay/recorder.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include <contextune/error.hpp>

#include "intercept/memory/transfer.hpp"
#include "intercept/nccl/nccl_caller.hpp"
#include "intercept/program/arguments.hpp"
#include "intercept/program/settled_launches.hpp"
#include "intercept/program/thread_state.hpp"

namespace contextune::intercept {
namespace {

constexpr std::size_t most_operations = 100'000;

/// Counts a call as being looked at while it exists.
class Inside {
 public:
  explicit Inside(std::atomic<int>& count) noexcept : count_(count) { count_.fetch_add(1); }
  ~Inside() { count_.fetch_sub(1); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  std::atomic<int>& count_;
};

}  // namespace

Recorder::Recorder(const contextune_frontend* frontend, const gpu::Driver& driver,
                   const Launcher& launcher, KernelTable& kernels, GraphTable& graphs,
                   ProcessMemory& memory, CaptureWatch& captures, bool several_devices)
    : frontend_(frontend),
      driver_(driver),
      launcher_(launcher),
      kernels_(kernels),
      graphs_(graphs),
      memory_(memory),
      captures_(captures),
      several_devices_(several_devices) {}

bool Recorder::begin(bool thread_bound, const Versions& versions, std::size_t most_host_bytes,
                     FirstLaunch first_launch, GiveWay give_way) noexcept {
  CUcontext context = nullptr;
  (void)driver_.cuCtxGetCurrent(&context);
  const std::lock_guard lock(mutex_);
  if (frontend_ == nullptr || begun_ || busy()) return false;
  begun_ = true;
  recording_ = {};
  first_launch_ = std::move(first_launch);
  give_way_ = std::move(give_way);
  most_host_bytes_ = most_host_bytes;
  thread_ = thread_bound ? this_thread_number() : 0;
  versions_ = versions;
  context_ = context;
  written_.clear();
  events_.clear();
  kernels_seen_.clear();
  graphs_seen_.clear();
  no_addresses_.clear();
  to_host_ = host_knows_ = false;
  active_.store(true, std::memory_order_release);
  // No launch goes past us by what its thread remembers.
  settled_changed();
  return true;
}

Recording Recorder::end() noexcept {
  const std::lock_guard lock(mutex_);
  active_.store(false, std::memory_order_release);
  begun_ = false;
  if (!recording_.obstacle && thread_ != 0 && thread_ != this_thread_number()) {
    recording_.obstacle = {FallbackReason::OtherThread, {}, false};
  }
  if (!recording_.obstacle && recording_.open_groups != 0) {
    recording_.obstacle = {FallbackReason::Collective, "The region ends inside a group of NCCL's.",
                           false};
  }
  if (!recording_.obstacle && versions_ != this->versions()) {
    recording_.obstacle = {FallbackReason::ReplayAllocation, {}, true};
  }
  return std::exchange(recording_, {});
}

void Recorder::obstruct(FallbackReason reason, std::string text, bool retry) noexcept {
  const std::lock_guard lock(mutex_);
  if (active()) set_obstacle({reason, std::move(text), retry});
}

void Recorder::set_obstacle(Recording::Obstacle obstacle) noexcept {
  if (recording_.obstacle) return;
  recording_.obstacle = std::move(obstacle);
  recording_.operations.clear();
  active_.store(false, std::memory_order_release);
}

void Recorder::memory_wanted(std::size_t bytes) noexcept {
  if (active() && !is_called_by_nccl()) obstruct(FallbackReason::ReplayAllocation, {}, true);
  if (!memory_.own_bytes().any()) return;
  GiveWay give_way;
  {
    const std::lock_guard lock(mutex_);
    give_way = give_way_;
  }
  if (give_way) give_way(bytes);
}

bool Recorder::is_ours() noexcept {
  if (!active()) return false;
  CUcontext context = nullptr;
  (void)driver_.cuCtxGetCurrent(&context);
  const std::lock_guard lock(mutex_);
  if (!active() || recording_.obstacle) return false;
  if (thread_ != this_thread_number() && is_called_by_nccl()) return false;
  if (thread_ == 0) thread_ = this_thread_number();
  if (thread_ != this_thread_number()) {
    set_obstacle({FallbackReason::OtherThread, {}, false});
  } else if (context != context_) {
    set_obstacle({FallbackReason::SeveralDevices, "The region works in several contexts.", false});
  }
  return !recording_.obstacle;
}

bool Recorder::is_owner() noexcept {
  const std::lock_guard lock(mutex_);
  return thread_ == this_thread_number();
}

CUresult Recorder::launch(const contextune_launch& call) noexcept {
  const Inside inside(inside_);
  if (!is_ours()) return launcher_.as_written(call);
  std::unique_ptr<RecordedLaunch> copy;
  Launch launch(call);
  if (several_devices_) (void)driver_.cuCtxGetCurrent(&launch.context);
  try {
    if (may_record(launch)) {
      if (const KnownKernel* kernel = meet(launch)) {
        copy = std::make_unique<RecordedLaunch>(call, kernel->identity.parameters);
        check_arguments(launch, *kernel);
      }
    }
  } catch (const std::exception& error) {
    obstruct(FallbackReason::UnknownKernel, error.what());
  }
  const CUresult result = launcher_.as_written(call);
  if (copy == nullptr || result != CUDA_SUCCESS) return result;
  try {
    Operation operation;
    operation.kind = Operation::Kind::Launch;
    operation.fn = call.fn;
    operation.stream = launch.stream;
    operation.launch = std::move(copy);
    add(std::move(operation));
  } catch (const std::exception& error) {
    obstruct(FallbackReason::ReplayFailed, error.what());
  }
  return result;
}

CUresult Recorder::launch_graph(const GraphCall& call) noexcept {
  const Inside inside(inside_);
  bool fine = false;
  try {
    fine = is_ours() && may_record(call);
  } catch (const std::exception& error) {
    obstruct(FallbackReason::UnknownKernel, error.what());
  }
  const CUresult result = graphs_.as_written(call);
  if (!fine || result != CUDA_SUCCESS) return result;
  try {
    Operation operation;
    operation.kind = Operation::Kind::Graph;
    operation.fn = call.fn;
    operation.stream = call.stream;
    operation.graph = call.exec;
    add(std::move(operation));
  } catch (const std::exception& error) {
    obstruct(FallbackReason::ReplayFailed, error.what());
  }
  return result;
}

bool Recorder::may_record(const Launch& launch) {
  if (captures_.possible() && captures_.is_capturing(launch.stream)) {
    obstruct(FallbackReason::Capture, {});
    return false;
  }
  for (std::uint32_t i = 0; i < launch.num_attributes; ++i) {
    const auto id = launch.attributes[i].id;
    if (id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT ||
        id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT) {
      obstruct(FallbackReason::UnsupportedLaunch, "A launch records an event of its own.");
      return false;
    }
  }
  return true;
}

bool Recorder::may_record(const GraphCall& call) {
  if (graphs_seen_.contains(call.exec)) return true;
  const auto graph = graphs_.find(call.exec);
  if (std::string why = graphs_.unreplayable(call.exec); graph == nullptr || !why.empty()) {
    obstruct(FallbackReason::GraphUnreplayable, why);
    return false;
  }
  std::shared_ptr<const GraphNodes> nodes;
  std::string why_not;
  {
    const std::lock_guard lock(graph->mutex);
    nodes = graph->nodes();
    why_not = graph->why_not();
  }
  if (nodes == nullptr) {
    obstruct(FallbackReason::GraphUnreplayable, std::move(why_not));
    return false;
  }
  for (const auto* kernels : {&nodes->kernels(), &nodes->inner_kernels()}) {
    for (const GraphKernel& one : *kernels) {
      CUlaunchConfig config{};
      Launch launch = one.launch(config);
      if (several_devices_) launch.context = graph->context();
      const KnownKernel* kernel = meet(launch);
      if (kernel == nullptr) return false;
      check_arguments(launch, *kernel);
    }
  }
  graphs_seen_.insert(call.exec);
  return true;
}

const KnownKernel* Recorder::meet(const Launch& launch) {
  const KnownKernel* kernel = kernels_.find(launch.function, launch.context);
  if (kernel == nullptr) {
    obstruct(FallbackReason::UnknownKernel, {});
    return nullptr;
  }
  if (!kernels_seen_.insert(kernel).second) return kernel;
  const std::string& name = kernel->identity.name;
  if (name.starts_with("nccl") && name.find("DevKernel") != std::string::npos) {
    obstruct(FallbackReason::Collective, {});
    return nullptr;
  }
  if (auto obstacle = first_launch_(*kernel)) {
    obstruct(obstacle->reason, std::move(obstacle->text), obstacle->retry);
    return nullptr;
  }
  return kernel;
}

void Recorder::check_arguments(const Launch& launch, const KnownKernel& kernel) {
  const auto& layouts = kernel.identity.parameters;
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    const auto* bytes = static_cast<const std::byte*>(argument_of(launch, i, layouts[i]));
    if (bytes == nullptr) throw Error("An argument of a launch cannot be found.");
    for (std::size_t at = 0; at + sizeof(CUdeviceptr) <= layouts[i].size_bytes;
         at += sizeof(CUdeviceptr)) {
      CUdeviceptr word = 0;
      std::memcpy(&word, bytes + at, sizeof word);
      const auto allocation = memory_.allocations().find(word);
      if (!allocation && is_unseen_memory(word)) {
        return obstruct(FallbackReason::UnknownMemory, "Kernel " + kernel.identity.name +
                                                           " is given memory whose allocation was "
                                                           "not seen.");
      }
      if (!allocation) continue;
      if (allocation->of_nccl) {
        return obstruct(FallbackReason::UnknownMemory,
                        "Kernel " + kernel.identity.name + " is given memory of NCCL's.");
      }
      if (allocation->kind != AllocationKind::Host) continue;
      return obstruct(FallbackReason::HostMemory,
                      "Kernel " + kernel.identity.name + " is given host memory.");
    }
  }
}

/// A library opened with RTLD_DEEPBIND may have such memory, for example: its calls to the driver
/// are not seen.
bool Recorder::is_unseen_memory(CUdeviceptr word) {
  constexpr CUdeviceptr lowest = 1U << 16U;  // below it the system maps nothing
  if (word < lowest || !no_addresses_.insert(word).second) return false;
  unsigned type = 0;
  return driver_.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, word) ==
         CUDA_SUCCESS;
}

void Recorder::add(Operation operation) {
  const std::lock_guard lock(mutex_);
  if (!active() || recording_.obstacle) return;
  if (host_knows_) return set_obstacle({FallbackReason::HostReads, {}, false});
  if (recording_.operations.size() >= most_operations || recording_.host_bytes > most_host_bytes_) {
    return set_obstacle({FallbackReason::RecordingTooLong, {}, false});
  }
  if (operation.stream != nullptr) use(operation.stream);
  recording_.operations.push_back(std::move(operation));
}

void Recorder::use(CUstream stream) {
  auto& streams = recording_.streams;
  if (std::find(streams.begin(), streams.end(), stream) == streams.end()) streams.push_back(stream);
}

void Recorder::note_host_side(Operation& operation, std::size_t at, std::size_t size_bytes,
                              bool writes) {
  Operation::HostSide side;
  side.argument = at;
  side.size_bytes = size_bytes;
  side.writes = writes;
  side.program = reinterpret_cast<const void*>(operation.arguments[at]);
  side.pinned = memory_.allocations().find(operation.arguments[at]).has_value();
  const auto* begin = static_cast<const std::byte*>(side.program);
  const std::lock_guard lock(mutex_);
  // Once where a replay reads it or writes it, and once as it was.
  recording_.host_bytes += 2 * size_bytes;
  if (writes) {
    written_.emplace_back(begin, size_bytes);
  } else {
    for (const auto& [other, other_bytes] : written_) {
      if (begin < other + other_bytes && other < begin + size_bytes) {
        set_obstacle({FallbackReason::HostMemory,
                      "A copy from the host reads what an earlier one wrote there.", false});
      }
    }
    if (recording_.host_bytes <= most_host_bytes_) side.bytes.assign(begin, begin + size_bytes);
  }
  operation.host = std::move(side);
}

bool Recorder::note_transfer(contextune_fn fn, void* const* args) {
  const auto transfer = transfer_of(fn, args);
  if (!transfer) return false;
  Operation operation;
  operation.kind = Operation::Kind::Call;
  operation.fn = fn;
  operation.stream = transfer->stream;
  const auto sizes = driver_call(fn).argument_bytes;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::memcpy(&operation.arguments[i], args[i], sizes[i]);
  }
  const auto is_host = [this](CUdeviceptr address) {
    if (const auto known = memory_.allocations().find(address)) {
      if (known->of_nccl)
        obstruct(FallbackReason::UnknownMemory, "The region copies from or to memory of NCCL's.");
      return known->kind == AllocationKind::Host;
    }
    unsigned type = 0;
    if (driver_.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) !=
            CUDA_SUCCESS ||
        type == CU_MEMORYTYPE_HOST) {
      return true;
    }
    obstruct(FallbackReason::UnknownMemory,
             "The region copies from or to memory whose allocation was not seen.", true);
    return false;
  };
  const bool any_kind =
      transfer->source != Transfer::none && transfer->destination != Transfer::none;
  const bool reads = transfer->source != Transfer::none &&
                     (!any_kind || is_host(operation.arguments[transfer->source]));
  const bool writes = transfer->destination != Transfer::none &&
                      (!any_kind || is_host(operation.arguments[transfer->destination]));
  if (reads && writes) return false;
  // An address of the device where the call says that it is the host's.
  if ((reads && !is_host(operation.arguments[transfer->source])) ||
      (writes && !is_host(operation.arguments[transfer->destination]))) {
    return false;
  }
  if (reads) note_host_side(operation, transfer->source, transfer->size_bytes, false);
  if (writes) note_host_side(operation, transfer->destination, transfer->size_bytes, true);
  const bool pinned = operation.host && operation.host->pinned;
  add(std::move(operation));
  const std::lock_guard lock(mutex_);
  to_host_ = to_host_ || writes;
  // Only after it: a copy to the host that ends the region's work is nothing the host acted on.
  if (to_host_ && (transfer->synchronous || (writes && !pinned))) host_knows_ = true;
  return true;
}

}  // namespace contextune::intercept
