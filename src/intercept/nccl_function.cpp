#include "intercept/nccl_function.hpp"

#include <array>

#include "intercept/offered_operations.hpp"

namespace contextune::intercept {
namespace {

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

std::vector<std::string> names_of(collective::Function function) {
  std::vector<std::string> names = {std::string(name_of(function))};
  for (int fn = 0; fn < contextune_nccl_count; ++fn)
    if (function_of(static_cast<contextune_nccl_fn>(fn)) == function)
      names.emplace_back(functions[static_cast<std::size_t>(fn)].name);
  return names;
}

std::string_view why_not_asked(contextune_tuner_state state) noexcept {
  switch (state) {
    case contextune_tuner_offered:
    case contextune_tuner_not_yet:
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
