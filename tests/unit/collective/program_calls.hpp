#pragma once

#include <cstdint>
#include <memory>

#include "collective/collective_calls.hpp"

namespace contextune::collective {

/// A program's calls, without a frontend.
class Program {
 public:
  Program() : calls(std::make_unique<CollectiveCalls>()) {}

  static contextune_nccl_call call(contextune_nccl_fn fn, contextune_nccl_kind kind) {
    contextune_nccl_call result{};
    result.fn = fn;
    result.kind = kind;
    result.rank = -1;
    result.color = -1;
    result.result = -1;
    result.tuner = contextune_tuner_offered;
    return result;
  }

  /// @param tuner what NCCL does meanwhile: nothing where it is null
  void make(contextune_nccl_call made, void* handle, const contextune_tuner_comm* tuner = nullptr,
            int result = 0) {
    void* place = nullptr;
    made.made = &place;
    made.num_made = 1;
    calls->before(made);
    if (tuner != nullptr) begun = calls->begin_tuner(*tuner);
    place = handle;
    made.result = result;
    calls->after(made);
  }

  void init(void* handle, const contextune_tuner_comm* tuner = nullptr, int result = 0) {
    contextune_nccl_call made = call(contextune_fn_ncclCommInitRank, contextune_nccl_communicator);
    made.nranks = 4;
    made.rank = 2;
    made.unique_id = 99;
    make(made, handle, tuner, result);
  }

  void end(void* handle) {
    contextune_nccl_call ended = call(contextune_fn_ncclCommDestroy, contextune_nccl_communicator);
    ended.comm = handle;
    calls->before(ended);
    ended.result = 0;
    calls->after(ended);
  }

  /// @return what the decider said
  bool all_reduce(void* handle, std::int64_t tuner, unsigned groups = 0) {
    contextune_nccl_call reduces = call(contextune_fn_ncclAllReduce, contextune_nccl_collective);
    reduces.comm = handle;
    reduces.count = 8;
    reduces.group_depth = groups;
    calls->before(reduces);
    const bool decided = tuner >= 0 && ask(tuner);
    reduces.result = 0;
    calls->after(reduces);
    return decided;
  }

  bool ask(std::int64_t tuner) {
    TunerQuestion question;
    question.tuner = tuner;
    question.function = 4;
    question.bytes = 32;
    return calls->decide(question);
  }

  std::unique_ptr<CollectiveCalls> calls;
  std::int64_t begun = -1;
};

inline constexpr contextune_tuner_comm tuner_comm{77, 4, 2, 5, contextune_tuner_offered, 0};

}  // namespace contextune::collective
