#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace contextune::gpu {

/// The name of a kernel as its author thinks of it: demangled, without return type and parameters.
/// "_Z4tileILi32ELi8EEvPfi" -> "tile<32, 8>". A name that is not mangled stays as it is.
[[nodiscard]] std::string demangled_kernel_name(const std::string& symbol);

/// The types of a kernel's parameters from its mangled name: {"float*", "int"}. Empty when the name
/// does not tell (extern "C", Triton) and for a kernel without parameters.
[[nodiscard]] std::vector<std::string> parameter_types(const std::string& symbol);

/// Whether two kernel names mean the same kernel: blanks do not count.
[[nodiscard]] bool same_kernel_name(std::string_view a, std::string_view b) noexcept;

}  // namespace contextune::gpu
