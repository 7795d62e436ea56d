#include "intercept/nccl/nccl_function.hpp"

#include <array>

#include "intercept/nccl/collective_calls.hpp"
#include "intercept/nccl/nccl_caller.hpp"

namespace contextune::intercept {
namespace {

constexpr int oldest_that_asks = 22200;  // as in the frontend's tuner_variable.c

constexpr std::array<NcclFunction, contextune_nccl_count> functions = {{
#define CONTEXTUNE_NCCL(name, since, kind, why_not, ...) {#name, why_not},
#define CONTEXTUNE_NCCL_LISTED(...)
#include "preload/registry/nccl.def"
#undef CONTEXTUNE_NCCL
#undef CONTEXTUNE_NCCL_LISTED
}};

}  // namespace

const NcclFunction& nccl_function(contextune_nccl_fn fn) noexcept {
  return functions[fn];
}

std::optional<collective::Function> function_of(contextune_nccl_fn fn) noexcept {
  using collective::Function;
  switch (fn) {
    case contextune_fn_ncclAllReduce:
      return Function::AllReduce;
    case contextune_fn_ncclAllGather:
      return Function::AllGather;
    case contextune_fn_ncclReduceScatter:
      return Function::ReduceScatter;
    case contextune_fn_ncclBroadcast:
    case contextune_fn_ncclBcast:
      return Function::Broadcast;
    case contextune_fn_ncclReduce:
      return Function::Reduce;
    default:
      return std::nullopt;
  }
}

std::vector<std::string> names_of(collective::Function function) {
  std::vector<std::string> names = {std::string(name_of(function))};
  for (int fn = 0; fn < contextune_nccl_count; ++fn)
    if (function_of(static_cast<contextune_nccl_fn>(fn)) == function)
      names.emplace_back(functions[static_cast<std::size_t>(fn)].name);
  return names;
}

std::string why_not_asked(contextune_tuner_state state) {
  const int version = nccl_version();
  switch (state) {
    case contextune_tuner_not_yet:
    case contextune_tuner_offered:
      if (version != 0 && version < oldest_that_asks) {
        return "NCCL " + std::to_string(version / 10000) + '.' +
               std::to_string(version / 100 % 100) + '.' + std::to_string(version % 100) +
               " is older than 2.22, the first that asks contextune";
      }
      if (collective_calls().had_too_many()) {
        return "there were more than " + std::to_string(collective::CollectiveCalls::max_tuners) +
               " communicators at a time, and no more are told apart";
      }
      return {};
    case contextune_tuner_users_choice:
      return "NCCL_ALGO or NCCL_PROTO is set, so NCCL is left to its user";
    case contextune_tuner_users_policy:
      return "NCCL_CTA_POLICY is set, or a communicator's configuration sets its policy, which "
             "NCCL follows only where it has no tuner";
    case contextune_tuner_no_path:
      return "the path of contextune's preloaded library, or of the plugin that NCCL_TUNER_PLUGIN "
             "names, is longer than NCCL can load";
  }
  return {};
}

}  // namespace contextune::intercept
