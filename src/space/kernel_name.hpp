#pragma once

#include <string>
#include <string_view>

namespace contextune::space {

/// A kernel's name in the one form in which names are compared. It has no return type, no parameter
/// list and no spaces but between words. Template arguments stand as people write them:
/// "gemm<64,64>" for "void gemm<(int)64, 64u>(float*)". A symbol stays as it is.
[[nodiscard]] std::string normalised_name(std::string_view name);

/// `name` without its parameter list, if it has one: "ns::(anonymous namespace)::k".
[[nodiscard]] std::string_view without_parameters(std::string_view name);

}  // namespace contextune::space
