#include "gpu/clock/activity_timer.hpp"

#include <mutex>
#include <utility>

#include "gpu/clock/activity_kinds.hpp"
#include "gpu/driver/process_exit.hpp"
#include "gpu/image/kernel_shape.hpp"

namespace contextune::gpu {
namespace {

// Whom CUPTI's callbacks belong to. Set once attached, so that a callback always finds its buffers.
std::atomic<ActivityTimer*> owner{nullptr};

// The launch that this thread is making. Trivial, so that a thread may end at any time.
struct Started {
  const ActivityTimer* timer;
  std::uint64_t tag;
  std::uint64_t begin;
};
thread_local Started started{nullptr, 0, 0};

// Once CUPTI's own exit handlers have run it must not be called any more.
std::once_flag exit_watched;

std::uint32_t extent(std::int32_t value) {
  return static_cast<std::uint32_t>(value);
}

/// 0 for a kernel that no graph launched: of these there is one a call.
std::uint64_t graph_shape_of(const KernelRecord& kernel) {
  if (kernel.graphNodeId == 0 || kernel.name == nullptr) return 0;
  return kernel_shape(kernel.name,
                      {extent(kernel.gridX), extent(kernel.gridY), extent(kernel.gridZ)},
                      {extent(kernel.blockX), extent(kernel.blockY), extent(kernel.blockZ)},
                      extent(kernel.dynamicSharedMemory));
}

}  // namespace

ActivityTimer::ActivityTimer(const Driver& driver) : driver_(driver) {}

ActivityTimer::ActivityTimer(const Driver& driver, CuptiLibrary cupti)
    : driver_(driver), cupti_(std::move(cupti)) {}

ActivityTimer::~ActivityTimer() {
  if (!release()) owner.store(nullptr);
}

void ActivityTimer::buffer_requested(std::uint8_t** buffer, std::size_t* size,
                                     std::size_t* max_records) {
  ActivityTimer* timer = owner.load(std::memory_order_acquire);
  *max_records = 0;
  *buffer = timer != nullptr ? timer->buffers_->acquire() : nullptr;
  *size = *buffer != nullptr ? ActivityBuffers::buffer_bytes : 0;
}

void ActivityTimer::buffer_completed(CUcontext context, std::uint32_t stream, std::uint8_t* buffer,
                                     std::size_t, std::size_t valid_size) {
  ActivityTimer* timer = owner.load(std::memory_order_acquire);
  if (timer == nullptr || buffer == nullptr) return;
  try {
    timer->consume(buffer, valid_size);
  } catch (...) {  // no memory: what was in the buffer is lost
    timer->lost_.fetch_add(1, std::memory_order_relaxed);
  }
  std::size_t dropped = 0;
  if (timer->cupti_->cuptiActivityGetNumDroppedRecords(context, stream, &dropped) ==
      CUPTI_SUCCESS) {
    timer->lost_.fetch_add(dropped, std::memory_order_relaxed);
  }
  timer->buffers_->release(buffer, valid_size);
}

void ActivityTimer::consume(const std::uint8_t* buffer, std::size_t valid_bytes) {
  CUpti_Activity* record = nullptr;
  auto* start = const_cast<std::uint8_t*>(buffer);  // CUPTI's signature; it only reads
  while (cupti_->cuptiActivityGetNextRecord(start, valid_bytes, &record) == CUPTI_SUCCESS) {
    switch (record->kind) {
      case CUPTI_ACTIVITY_KIND_DRIVER:
      case CUPTI_ACTIVITY_KIND_RUNTIME: {
        const auto& call = *reinterpret_cast<const CUpti_ActivityAPI*>(record);
        if (is_graph_call(call.kind, call.cbid)) graphs_.store(true);
        records_.add_call(call.correlationId, call.threadId, call.start, call.end);
        break;
      }
      case CUPTI_ACTIVITY_KIND_KERNEL:
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
        const auto& work = *reinterpret_cast<const KernelRecord*>(record);
        records_.add_work(work.correlationId, work.start, work.end, true, graph_shape_of(work));
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMCPY: {
        const auto& work = *reinterpret_cast<const CopyRecord*>(record);
        records_.add_work(work.correlationId, work.start, work.end, false);
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMCPY2: {
        const auto& work = *reinterpret_cast<const PeerCopyRecord*>(record);
        records_.add_work(work.correlationId, work.start, work.end, false);
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMSET: {
        const auto& work = *reinterpret_cast<const MemsetRecord*>(record);
        records_.add_work(work.correlationId, work.start, work.end, false);
        break;
      }
      default:
        break;
    }
  }
}

bool ActivityTimer::open(std::string& why) {
  if (is_open()) return true;
  const LibraryCall call;
  if (is_exiting()) {
    why = "the program ends";
    return false;
  }
  if (!attached_ && !attach(why)) return false;
  if (!enable(why)) {
    disable();
    return false;
  }
  // CUPTI registers a handler for the end when it is first enabled. Ours, registered again, runs
  // before it.
  static std::once_flag first;
  std::call_once(first, watch_exit);
  open_.store(true);
  return true;
}

bool ActivityTimer::attach(std::string& why) {
  const std::string tool = driver_.simulated ? std::string() : profiler_in_process();
  if (!tool.empty()) {
    why = tool + " is in this process, and CUPTI has room for one user";
    return false;
  }
  if (!cupti_ && !(cupti_ = open_cupti(driver_, why))) return false;
  if (buffers_ == nullptr) buffers_ = std::make_unique<ActivityBuffers>();
  std::call_once(exit_watched, watch_exit);
  ActivityTimer* nobody = nullptr;
  if (!owner.compare_exchange_strong(nobody, this)) {
    why = "another timer of this process uses CUPTI";
    return false;
  }
  CUptiResult result = cupti_->cuptiActivityRegisterCallbacks(&buffer_requested, &buffer_completed);
  if (result != CUPTI_SUCCESS) {
    owner.store(nullptr);
    why = result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
              ? "another tool in this process already uses CUPTI, which has room for one user"
              : cupti_->path + ": cuptiActivityRegisterCallbacks: " + cupti_->describe(result);
    return false;
  }
  attached_ = true;
  if (cupti_->cuptiActivitySetAttribute != nullptr) {
    // Ours are zeroed; else CUPTI clears them within the program's launches.
    std::uint8_t zeroed = 1;
    std::size_t size = sizeof(zeroed);
    (void)cupti_->cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &size,
                                            &zeroed);
  }
  return true;
}

bool ActivityTimer::enable(std::string& why) {
  for (const CUpti_ActivityKind kind :
       {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
        CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_DRIVER,
        CUPTI_ACTIVITY_KIND_RUNTIME}) {
    const CUptiResult result = cupti_->cuptiActivityEnable(kind);
    if (result != CUPTI_SUCCESS) {
      why = result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
                ? "another tool in this process already uses CUPTI, which has room for one user"
                : cupti_->path + ": cuptiActivityEnable(" + std::to_string(kind) +
                      "): " + cupti_->describe(result);
      return false;
    }
    enabled_.push_back(kind);
  }
  record_launching_calls_only();
  return true;
}

void ActivityTimer::record_launching_calls_only() {
  for (std::uint32_t call = 1; call < CUPTI_DRIVER_TRACE_CBID_SIZE; ++call) {
    if (cupti_->cuptiActivityEnableDriverApi == nullptr) break;
    if (driver_call_makes_work(call) || is_graph_call(CUPTI_ACTIVITY_KIND_DRIVER, call)) continue;
    (void)cupti_->cuptiActivityEnableDriverApi(call, 0);
  }
  for (std::uint32_t call = 1; call < CUPTI_RUNTIME_TRACE_CBID_SIZE; ++call) {
    if (cupti_->cuptiActivityEnableRuntimeApi == nullptr) break;
    if (runtime_call_makes_work(call) || is_graph_call(CUPTI_ACTIVITY_KIND_RUNTIME, call)) continue;
    (void)cupti_->cuptiActivityEnableRuntimeApi(call, 0);
  }
}

void ActivityTimer::disable() {
  for (const CUpti_ActivityKind kind : enabled_) (void)cupti_->cuptiActivityDisable(kind);
  enabled_.clear();
  // Single calls are not switched off: then the heap was corrupt where CUPTI was finalized later (3
  // of 9 runs of a cuBLASLt program on an H200, and none of 9 without).
}

void ActivityTimer::close() {
  if (!is_open()) return;
  open_.store(false);
  const LibraryCall call;
  if (is_exiting()) return;
  disable();
  (void)cupti_->cuptiActivityFlushAll(0);
}

void ActivityTimer::note_graph() noexcept {
  if (attached()) graphs_.store(true);
}

bool ActivityTimer::release() {
  close();
  if (!attached_) return true;
  const LibraryCall call;
  // Sequentially consistent with launch_begin: it sees that we are closed, or we see it inside.
  if (inside_.load() != 0 || graphs_.load() || is_exiting()) return false;
  (void)cupti_->cuptiActivityFlushAll(0);
  if (cupti_->cuptiFinalize() != CUPTI_SUCCESS) return false;
  attached_ = false;
  owner.store(nullptr);
  buffers_->reclaim();
  records_.resolve(launch_log_);
  records_.forget_correlations();
  launches_settled_ = launches_.load(std::memory_order_relaxed);
  seen_settled_ = records_.launches_seen();
  return true;
}

void ActivityTimer::launch_begin(std::uint64_t tag, StreamHandle) noexcept {
  // Within a launch that is being timed everything is that one's work.
  if (!is_open() || started.timer == this || is_exiting()) return;
  inside_.fetch_add(1);
  std::uint64_t now = 0;
  if (!open_.load() || cupti_->cuptiGetTimestamp(&now) != CUPTI_SUCCESS) {
    inside_.fetch_sub(1);
    return;
  }
  started = Started{this, tag, now};
}

void ActivityTimer::launch_end(std::uint64_t tag, StreamHandle) noexcept {
  if (started.timer != this || started.tag != tag) return;
  started.timer = nullptr;
  std::uint64_t now = 0;
  const bool timed = cupti_->cuptiGetTimestamp(&now) == CUPTI_SUCCESS;
  if (timed && launch_log_.add({tag, started.begin, now})) {
    launches_.fetch_add(1, std::memory_order_relaxed);
  } else {
    lost_.fetch_add(1, std::memory_order_relaxed);
  }
  inside_.fetch_sub(1);
}

void ActivityTimer::flush(bool wait) {
  const LibraryCall call;
  if (!attached_ || is_exiting()) return;
  const std::uint64_t launches = launches_.load(std::memory_order_relaxed);
  (void)cupti_->cuptiActivityFlushAll(0);
  records_.resolve(launch_log_);
  if (!wait) return;
  // The forced flush takes 0.2 ms on an H200; it is needed when a launch made no work (it failed,
  // or was captured), which cannot be told from records that are late.
  if (records_.launches_seen() - seen_settled_ < launches - launches_settled_) {
    (void)cupti_->cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    records_.resolve(launch_log_);
  }
  records_.settle();
  launches_settled_ = launches;
  seen_settled_ = records_.launches_seen();
}

void ActivityTimer::collect(std::vector<TimedWork>& work) {
  records_.resolve(launch_log_);
  records_.take(work);
}

std::uint64_t ActivityTimer::dropped() const {
  return lost_.load(std::memory_order_relaxed) + records_.bad();
}

}  // namespace contextune::gpu
