// Calls of NCCL in a recording.
#include <exception>
#include <string>

#include "intercept/nccl/nccl_caller.hpp"
#include "intercept/nccl/nccl_library.hpp"
#include "intercept/recording/recorder.hpp"

namespace contextune::intercept {
namespace {

std::string calls_nccl() {
  return "The region calls NCCL in a way that cannot be repeated: ";
}

}  // namespace

bool Recorder::may_record(const contextune_nccl_call& call) {
  const auto obstacle = [this](std::string text) {
    obstruct(FallbackReason::Collective, calls_nccl() + std::move(text) + '.');
    return false;
  };
  if (call.kind == contextune_nccl_communicator) {
    obstruct(FallbackReason::ReplayAllocation, "The region makes or ends a communicator of NCCL.",
             true);
    return false;
  }
  if (frontend_->nccl_can_repeat == nullptr || frontend_->nccl_can_repeat(&call) == 0)
    return obstacle("messages and exchanges are not repeated");
  // It may be destroyed before the region ends, and its number be another's then.
  if (call.op >= num_nccl_operators)
    return obstacle("it reduces by an operator of the program's own");
  if (const char* why = nccl_code_unknown()) return obstacle(why);
  std::uint32_t open_groups = 0;
  {
    const std::lock_guard lock(mutex_);
    open_groups = open_.open_groups();
  }
  if (call.group_depth != open_groups) return obstacle("it begins inside a group");
  if (captures_.possible() && captures_.is_capturing(call.stream)) {
    obstruct(FallbackReason::Capture, {});
    return false;
  }
  for (const void* buffer : {call.sendbuff, static_cast<const void*>(call.recvbuff)}) {
    const auto address = reinterpret_cast<CUdeviceptr>(buffer);
    if (address == 0) continue;
    const auto known = memory_.allocations().find(address);
    if (!known || known->of_nccl || known->kind == AllocationKind::Host)
      return obstacle("it is given memory of the host, or memory whose allocation was not seen");
  }
  return true;
}

void Recorder::nccl_begins(const contextune_nccl_call& call) noexcept {
  if (call.kind == contextune_nccl_other || !is_ours()) return;
  try {
    (void)may_record(call);
  } catch (const std::exception& error) {
    obstruct(FallbackReason::ReplayFailed, error.what());
  }
}

void Recorder::nccl_ended(const contextune_nccl_call& call) noexcept {
  if (call.kind == contextune_nccl_other || !is_ours()) return;
  if (call.result != nccl_success) {
    return obstruct(FallbackReason::Collective,
                    "NCCL answered a call with " + std::to_string(call.result) +
                        (call.result == nccl_in_progress ? ", not through yet." : "."));
  }
  try {
    Operation operation;
    operation.kind = Operation::Kind::Collective;
    operation.collective = std::make_unique<const contextune_nccl_call>(call);
    if (call.kind == contextune_nccl_collective)
      operation.stream = call.stream == nullptr ? CU_STREAM_LEGACY : call.stream;
    add(std::move(operation));
    const std::lock_guard lock(mutex_);
    open_.note_group(call.fn);
  } catch (const std::exception& error) {
    obstruct(FallbackReason::ReplayFailed, error.what());
  }
}

}  // namespace contextune::intercept
