#include "intercept/runtime/collective_hooks.hpp"

#include "intercept/collectives/process_collectives.hpp"
#include "intercept/host/own_arithmetic.hpp"
#include "intercept/host/uncancelled.hpp"
#include "intercept/nccl/collective_calls.hpp"
#include "intercept/program/thread_state.hpp"
#include "intercept/runtime/hooks.hpp"
#include "intercept/runtime/process_runtime.hpp"

namespace contextune::intercept {
void on_nccl_before(const contextune_nccl_call* call) noexcept {
  ProcessRuntime* const runtime = running_runtime();
  if (runtime == nullptr) return;
  NcclCalls& nccl = runtime->nccl();
  nccl.see(*call);
  if (nccl.repeats(*call)) return;
  const Uncancelled uncancelled;
  const OwnArithmetic arithmetic;
  collective_calls().before(*call);
  nccl.begins(*call);
}

void on_nccl_after(const contextune_nccl_call* call) noexcept {
  ProcessRuntime* const runtime = running_runtime();
  if (runtime == nullptr || process_collectives().end_settled(this_thread().collectives)) return;
  const Uncancelled uncancelled;
  const OwnArithmetic arithmetic;
  runtime->nccl().ends(*call);
  collective_calls().after(*call);
  runtime->nccl().join_ranks(*call);
}

std::int64_t on_tuner_begin(const contextune_tuner_comm* comm) noexcept {
  const OwnArithmetic arithmetic;
  return running_runtime() != nullptr ? collective_calls().begin_tuner(*comm) : -1;
}

int on_tuner_decide(std::int64_t comm, int function, std::uint64_t bytes, int num_pipelined,
                    float* table, int num_algorithms, int num_protocols, int /*registered*/,
                    int* num_channels) noexcept {
  // Whatever becomes of the runtime: what was agreed on with other ranks holds to the end.
  collective::TunerQuestion question;
  question.tuner = comm;
  question.function = function;
  question.bytes = bytes;
  question.num_pipelined = num_pipelined;
  question.table = table;
  question.algorithms = num_algorithms;
  question.protocols = num_protocols;
  question.channels = num_channels;
  const OwnArithmetic arithmetic;
  const std::optional<bool> as_before =
      process_collectives().decide_settled(question, this_thread().collectives);
  return as_before.value_or(false) || (!as_before && collective_calls().decide(question)) ? 1 : 0;
}

void on_tuner_end(std::int64_t comm) noexcept {
  const OwnArithmetic arithmetic;
  if (running_runtime() != nullptr) collective_calls().end_tuner(comm);
}

}  // namespace contextune::intercept
