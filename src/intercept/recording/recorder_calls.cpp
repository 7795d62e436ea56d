// Which driver calls a recording holds, and what each of the others does to it.
#include <exception>
#include <mutex>
#include <utility>

#include "intercept/collectives/process_collectives.hpp"
#include "intercept/host/entry_form.hpp"
#include "intercept/memory/transfer.hpp"
#include "intercept/recording/recorder.hpp"

namespace contextune::intercept {
namespace {

enum class Role {
  None,
  Transfer,
  Record,
  Wait,
  HostCall,
  StreamMemory,
  StreamWait,   ///< the host waits for a stream, or asks whether it is through
  EventWait,    ///< ... for an event
  ContextWait,  ///< ... for everything
  Unsupported,
};

Role role_of(contextune_fn fn) noexcept {
  switch (legacy_form(fn)) {
#define CONTEXTUNE_ENTRY(name, ...) case contextune_fn_##name:
#include "preload/registry/transfer.def"
#undef CONTEXTUNE_ENTRY
    return Role::Transfer;
    case contextune_fn_cuEventRecord:
    case contextune_fn_cuEventRecordWithFlags:
      return Role::Record;
    case contextune_fn_cuStreamWaitEvent:
      return Role::Wait;
    case contextune_fn_cuLaunchHostFunc:
    case contextune_fn_cuStreamAddCallback:
      return Role::HostCall;
    case contextune_fn_cuStreamWaitValue32:
    case contextune_fn_cuStreamWaitValue32_v2:
    case contextune_fn_cuStreamWaitValue64:
    case contextune_fn_cuStreamWaitValue64_v2:
    case contextune_fn_cuStreamWriteValue32:
    case contextune_fn_cuStreamWriteValue32_v2:
    case contextune_fn_cuStreamWriteValue64:
    case contextune_fn_cuStreamWriteValue64_v2:
    case contextune_fn_cuStreamBatchMemOp:
    case contextune_fn_cuStreamBatchMemOp_v2:
    case contextune_fn_cuWaitExternalSemaphoresAsync:
    case contextune_fn_cuSignalExternalSemaphoresAsync:
      return Role::StreamMemory;
    case contextune_fn_cuStreamSynchronize:
    case contextune_fn_cuStreamQuery:
      return Role::StreamWait;
    case contextune_fn_cuEventSynchronize:
    case contextune_fn_cuEventQuery:
      return Role::EventWait;
    case contextune_fn_cuCtxSynchronize:
    case contextune_fn_cuCtxSynchronize_v2:
      return Role::ContextWait;
    case contextune_fn_cuLaunch:
    case contextune_fn_cuLaunchGrid:
    case contextune_fn_cuLaunchGridAsync:
    case contextune_fn_cuLaunchCooperativeKernelMultiDevice:
    case contextune_fn_cuCtxRecordEvent:
    case contextune_fn_cuCtxWaitEvent:
    case contextune_fn_cuGreenCtxRecordEvent:
    case contextune_fn_cuGreenCtxWaitEvent:
      return Role::Unsupported;
    default:
      return Role::None;
  }
}

CUstream stream_of(contextune_fn fn, void* const* args, std::size_t at) noexcept {
  return stream_meant(fn, *static_cast<CUstream const*>(args[at]));
}

CUevent event_of(void* const* args, std::size_t at) noexcept {
  return *static_cast<CUevent const*>(args[at]);
}

}  // namespace

void Recorder::after(contextune_fn fn, void* const* args, CUresult result) noexcept {
  if (!active() || result != CUDA_SUCCESS || ProcessCollectives::is_inside()) return;
  const Role role = role_of(fn);
  if (role == Role::None) return;
  const bool waits =
      role == Role::StreamWait || role == Role::EventWait || role == Role::ContextWait;
  // Another thread may wait for what it likes.
  if (waits && !is_owner()) return;
  if (!is_ours()) return;
  if (captures_.possible() && captures_.any()) return obstruct(FallbackReason::Capture, {});
  try {
    switch (role) {
      case Role::Transfer:
        if (!note_transfer(fn, args)) {
          obstruct(FallbackReason::UnsupportedTransfer,
                   std::string("It calls ") + frontend_->name(fn) + ".");
        }
        return;
      case Role::Record:
        return note_event(event_of(args, 0), stream_of(fn, args, 1));
      case Role::Wait:
        return note_wait(stream_of(fn, args, 0), event_of(args, 1));
      case Role::HostCall:
        return obstruct(FallbackReason::HostCall, {});
      case Role::StreamMemory:
        return obstruct(FallbackReason::StreamMemory, {});
      case Role::StreamWait:
        return note_synchronise(stream_of(fn, args, 0));
      case Role::EventWait:
      case Role::ContextWait:
        return note_synchronise(nullptr);
      default:
        return obstruct(FallbackReason::UnsupportedLaunch,
                        std::string("It calls ") + frontend_->name(fn) + ".");
    }
  } catch (const std::exception& error) {
    obstruct(FallbackReason::ReplayFailed, error.what());
  }
}

void Recorder::event_imported(CUevent event) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    imported_events_.insert(event);
  } catch (const std::exception&) {
    // No memory: the memory that it goes with is shared, too.
  }
}

void Recorder::note_event(CUevent event, CUstream stream) {
  Operation operation;
  operation.kind = Operation::Kind::Record;
  operation.stream = stream;
  {
    const std::lock_guard lock(mutex_);
    operation.event = open_.number_of(event);
  }
  add(std::move(operation));
}

void Recorder::note_wait(CUstream stream, CUevent event) {
  Operation operation;
  operation.kind = Operation::Kind::Wait;
  operation.stream = stream;
  {
    const std::lock_guard lock(mutex_);
    const auto number = open_.find_event(event);
    // An event recorded before the region began is complete: the region began on an idle GPU.
    if (!number && !imported_events_.contains(event)) return;
    if (!number) {
      return set_obstacle({FallbackReason::SharedMemory,
                           "The region waits for an event that may be another process's.", false});
    }
    operation.event = *number;
  }
  add(std::move(operation));
}

void Recorder::note_synchronise(CUstream stream) {
  Operation operation;
  operation.kind = Operation::Kind::Synchronise;
  operation.stream = stream;
  {
    const std::lock_guard lock(mutex_);
    if (open_.note_synchronise()) return;
  }
  add(std::move(operation));
}

}  // namespace contextune::intercept
