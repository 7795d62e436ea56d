#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "core/value/kernel_rule.hpp"

namespace contextune::space {

/// The words for argument types in a space file, in the order of ArgumentType.
inline constexpr std::array<std::string_view, 12> argument_type_words = {
    "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f32", "f64", "ptr", "opaque"};

[[nodiscard]] std::optional<ArgumentType> parse_argument_type(std::string_view word) noexcept;
[[nodiscard]] std::string_view to_word(ArgumentType type) noexcept;

/// Size of an argument of that type; 0: any.
[[nodiscard]] std::size_t size_bytes(ArgumentType type) noexcept;

/// The types for a demangled parameter list: "int, float const*" gives I32, Pointer. A parameter
/// that is no number and no pointer is Opaque. "" and "void" give none.
[[nodiscard]] std::vector<ArgumentType> types_of_parameters(std::string_view parameters);

}  // namespace contextune::space
