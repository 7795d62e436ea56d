#include "space/argument_type.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace contextune::space {
namespace {

constexpr std::array<std::pair<std::string_view, ArgumentType>, 24> type_names = {{
    {"bool", ArgumentType::U8},
    {"char", ArgumentType::I8},
    {"signed char", ArgumentType::I8},
    {"unsigned char", ArgumentType::U8},
    {"short", ArgumentType::I16},
    {"unsigned short", ArgumentType::U16},
    {"int", ArgumentType::I32},
    {"unsigned int", ArgumentType::U32},
    {"unsigned", ArgumentType::U32},
    {"long", ArgumentType::I64},
    {"unsigned long", ArgumentType::U64},
    {"long long", ArgumentType::I64},
    {"unsigned long long", ArgumentType::U64},
    {"float", ArgumentType::F32},
    {"double", ArgumentType::F64},
    {"int8_t", ArgumentType::I8},
    {"uint8_t", ArgumentType::U8},
    {"int16_t", ArgumentType::I16},
    {"uint16_t", ArgumentType::U16},
    {"int32_t", ArgumentType::I32},
    {"uint32_t", ArgumentType::U32},
    {"int64_t", ArgumentType::I64},
    {"uint64_t", ArgumentType::U64},
    {"size_t", ArgumentType::U64},
}};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

ArgumentType type_of(std::string_view parameter) {
  parameter = trimmed(parameter);
  for (bool again = true; again;) {
    again = false;
    for (const std::string_view word : {" const", " volatile", " __restrict__", " __restrict"}) {
      if (parameter.ends_with(word)) {
        parameter = trimmed(parameter.substr(0, parameter.size() - word.size()));
        again = true;
      }
    }
    for (const std::string_view word : {"const ", "volatile "}) {
      if (parameter.starts_with(word) && !parameter.ends_with('*')) {
        parameter = trimmed(parameter.substr(word.size()));
        again = true;
      }
    }
    // "float*const" is a pointer too.
    if (parameter.ends_with("*const")) return ArgumentType::Pointer;
  }
  const bool to_function = parameter.find("(*)") != std::string_view::npos;
  if (parameter.ends_with('*') || parameter.ends_with('&') || to_function) {
    return ArgumentType::Pointer;
  }
  const auto* const found = std::find_if(type_names.begin(), type_names.end(),
                                         [&](const auto& row) { return row.first == parameter; });
  return found == type_names.end() ? ArgumentType::Opaque : found->second;
}

}  // namespace

std::optional<ArgumentType> parse_argument_type(std::string_view word) noexcept {
  const auto* const found = std::find(argument_type_words.begin(), argument_type_words.end(), word);
  if (found == argument_type_words.end()) return std::nullopt;
  return static_cast<ArgumentType>(std::distance(argument_type_words.begin(), found));
}

std::string_view to_word(ArgumentType type) noexcept {
  return argument_type_words[static_cast<std::size_t>(type)];
}

std::size_t size_bytes(ArgumentType type) noexcept {
  constexpr std::array<std::size_t, argument_type_words.size()> sizes = {1, 1, 2, 2, 4, 4,
                                                                         8, 8, 4, 8, 8, 0};
  return sizes[static_cast<std::size_t>(type)];
}

std::vector<ArgumentType> types_of_parameters(std::string_view parameters) {
  parameters = trimmed(parameters);
  std::vector<ArgumentType> types;
  if (parameters.empty() || parameters == "void") return types;
  int depth = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const char c = parameters[i];
    if (c == '<' || c == '(' || c == '[' || c == '{') ++depth;
    if (c == '>' || c == ')' || c == ']' || c == '}') --depth;
    if (c == ',' && depth == 0) {
      types.push_back(type_of(parameters.substr(start, i - start)));
      start = i + 1;
    }
  }
  types.push_back(type_of(parameters.substr(start)));
  return types;
}

}  // namespace contextune::space
