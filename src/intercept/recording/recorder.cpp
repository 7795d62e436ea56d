#include "intercept/recording/recorder.hpp"

#include <cstring>
#include <exception>
#include <utility>

#include "intercept/memory/transfer.hpp"
#include "intercept/nccl/nccl_caller.hpp"
#include "intercept/program/settled_launches.hpp"
#include "intercept/program/thread_state.hpp"

namespace contextune::intercept {
namespace {

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
      check_(driver, kernels, graphs, memory, captures, several_devices) {}

bool Recorder::begin(bool thread_bound, const ProgramVersions& versions,
                     std::size_t most_host_bytes, FirstLaunch first_launch,
                     GiveWay give_way) noexcept {
  CUcontext context = nullptr;
  (void)driver_.cuCtxGetCurrent(&context);
  const std::lock_guard lock(mutex_);
  if (frontend_ == nullptr || begun_ || busy()) return false;
  begun_ = true;
  open_ =
      OpenRecording(thread_bound ? this_thread_number() : 0, context, versions, most_host_bytes);
  give_way_ = std::move(give_way);
  check_.begin(std::move(first_launch));
  active_.store(true, std::memory_order_release);
  // No launch goes past us by what its thread remembers.
  settled_changed();
  return true;
}

Recording Recorder::end() noexcept {
  const std::lock_guard lock(mutex_);
  active_.store(false, std::memory_order_release);
  begun_ = false;
  return open_.end(this_thread_number(), versions());
}

void Recorder::obstruct(FallbackReason reason, std::string text, bool retry) noexcept {
  obstruct({reason, std::move(text), retry});
}

void Recorder::obstruct(Recording::Obstacle obstacle) noexcept {
  const std::lock_guard lock(mutex_);
  if (active()) set_obstacle(std::move(obstacle));
}

void Recorder::set_obstacle(Recording::Obstacle obstacle) noexcept {
  if (open_.is_obstructed()) return;
  open_.obstruct(std::move(obstacle));
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
  if (!active() || open_.is_obstructed()) return false;
  const std::uint64_t thread = this_thread_number();
  if (!open_.is_by(thread) && is_called_by_nccl()) return false;
  if (auto obstacle = open_.claim(thread, context)) set_obstacle(std::move(*obstacle));
  return !open_.is_obstructed();
}

bool Recorder::is_owner() noexcept {
  const std::lock_guard lock(mutex_);
  return open_.is_by(this_thread_number());
}

CUresult Recorder::launch(const contextune_launch& call) noexcept {
  const Inside inside(inside_);
  if (!is_ours()) return launcher_.as_written(call);
  std::unique_ptr<RecordedLaunch> copy;
  const Launch launch = check_.launch_of(call);
  try {
    copy = look_at(call, launch);
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
    if (is_ours()) {
      auto obstacle = check_.find_obstacle(call);
      fine = !obstacle;
      if (obstacle) obstruct(std::move(*obstacle));
    }
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

std::unique_ptr<RecordedLaunch> Recorder::look_at(const contextune_launch& call,
                                                  const Launch& launch) {
  auto obstacle = check_.find_obstacle(launch);
  std::unique_ptr<RecordedLaunch> copy;
  const KnownKernel* kernel = obstacle ? nullptr : check_.meet(launch, obstacle);
  if (kernel != nullptr) {
    copy = std::make_unique<RecordedLaunch>(call, kernel->identity.parameters);
    obstacle = check_.find_obstacle(launch, *kernel);
  }
  if (!obstacle) return copy;
  obstruct(std::move(*obstacle));
  return nullptr;
}

void Recorder::add(Operation operation) {
  const std::lock_guard lock(mutex_);
  if (!active() || open_.is_obstructed()) return;
  if (auto obstacle = open_.add(std::move(operation))) set_obstacle(std::move(*obstacle));
}

void Recorder::note_host_side(Operation& operation, std::size_t at, std::size_t size_bytes,
                              bool writes) {
  const bool pinned = memory_.allocations().find(operation.arguments[at]).has_value();
  const std::lock_guard lock(mutex_);
  auto obstacle = open_.note_host_side(operation, at, size_bytes, writes, pinned);
  if (obstacle) set_obstacle(std::move(*obstacle));
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
  open_.note_copy(writes, transfer->synchronous || (writes && !pinned));
  return true;
}

}  // namespace contextune::intercept
