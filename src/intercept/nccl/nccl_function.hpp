#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collective/collective.hpp"
#include "preload/contextune_abi.h"

namespace contextune::intercept {

/// The registry's entry for a function of NCCL that is wrapped. Text lives for ever.
struct NcclFunction {
  std::string_view name;           ///< "ncclAllReduce"
  std::string_view why_not_tuned;  ///< follows "is not tuned: "; "": it is
};

/// @param fn one of those that there are
[[nodiscard]] const NcclFunction& nccl_function(contextune_nccl_fn fn) noexcept;

/// The collective that the function asks for and NCCL asks a tuner about; absent: it is none.
[[nodiscard]] std::optional<collective::Function> function_of(contextune_nccl_fn fn) noexcept;

/// All names of a collective: that of its sites, such as "all_reduce", then NCCL's.
[[nodiscard]] std::vector<std::string> names_of(collective::Function function);

/// Why NCCL asks our tuner nothing, or not about all communicators, a clause; "": it is led to it.
[[nodiscard]] std::string why_not_asked(contextune_tuner_state state);

}  // namespace contextune::intercept
