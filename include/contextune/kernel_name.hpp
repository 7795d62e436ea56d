#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace contextune {
namespace detail {

/// The text of __PRETTY_FUNCTION__ ends in "[with auto kernel = NAME]" (gcc) or "[kernel = &NAME]"
/// (clang).
template <auto kernel>
constexpr std::string_view written_kernel_name() {
  std::string_view text = __PRETTY_FUNCTION__;
  text.remove_prefix(text.find("kernel = ") + 9);
  if (const auto more = text.find("; "); more != std::string_view::npos)
    text = text.substr(0, more);
  if (text.ends_with(']')) text.remove_suffix(1);
  if (text.starts_with('(') && text.ends_with(')')) text = text.substr(1, text.size() - 2);
  if (text.starts_with('&')) text.remove_prefix(1);
  return text;
}

}  // namespace detail

/// The name of a __global__ function as contextune::Kernel takes it: kernel_name<saxpy>(),
/// kernel_name<&gemm<64, 64>>(). Known when compiling, without a call to CUDA. An overloaded kernel
/// has to be cast to its type. Template arguments that are neither types, int nor bool are spelled
/// otherwise in symbols (3u): give Kernel the symbol then.
template <auto kernel>
[[nodiscard]] std::string kernel_name() {
  std::string name(detail::written_kernel_name<kernel>());
  // As the demangler spells it.
  for (std::size_t at = 0; (at = name.find("{anonymous}", at)) != std::string::npos;)
    name.replace(at, 11, "(anonymous namespace)");
  return name;
}

}  // namespace contextune
