#pragma once

#include <string>
#include <vector>

#include <contextune/contextune.h>

#include "api/function/function_record.hpp"

namespace contextune::api {

/// The configs that a call lists for a device; `num_sms` of one that is not known is 0.
/// @throws FunctionCall::Left, or Error if nobody can list them
[[nodiscard]] std::vector<std::string> list_space(const contextune_function& function,
                                                  const contextune_function_run& call,
                                                  const contextune_device& device);

/// "NVIDIA H200".
[[nodiscard]] std::string text_of(const contextune_device& device);

}  // namespace contextune::api
