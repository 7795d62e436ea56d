#pragma once

#include <string_view>

#include "preload/contextune_abi.h"

namespace contextune::intercept {

/// What the registry says of a function of NCCL that is wrapped. Text lives for ever.
struct NcclFunction {
  std::string_view name;           ///< "ncclAllReduce"
  std::string_view why_not_tuned;  ///< follows "is not tuned: "; "": it is
};

/// @param fn one of those that there are
[[nodiscard]] const NcclFunction& nccl_function(contextune_nccl_fn fn) noexcept;

/// Why NCCL asks our tuner nothing, a clause; "": it is led to it.
[[nodiscard]] std::string_view why_not_asked(contextune_tuner_state state) noexcept;

}  // namespace contextune::intercept
