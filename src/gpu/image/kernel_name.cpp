#include "gpu/image/kernel_name.hpp"

#include <cxxabi.h>
#include <cstdlib>
#include <memory>
#include <optional>

namespace contextune::gpu {
namespace {

bool opens(char c) {
  return c == '(' || c == '<' || c == '{' || c == '[';
}
bool closes(char c) {
  return c == ')' || c == '>' || c == '}' || c == ']';
}

std::optional<std::string> demangle(const std::string& symbol) {
  if (symbol.rfind("_Z", 0) != 0) return std::nullopt;
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
  if (status != 0 || text == nullptr) return std::nullopt;
  return std::string(text.get());
}

/// Where a demangled function splits: name in [begin, open), parameters in (open, close).
struct Signature {
  std::size_t begin = 0;
  std::size_t open = std::string::npos;
  std::size_t close = std::string::npos;
};

Signature split(const std::string& text) {
  Signature signature;
  signature.close = text.rfind(')');
  if (signature.close == std::string::npos) {
    signature.open = text.size();
    return signature;
  }
  // Only parentheses count here: in "k<(a)1>(int)" and "k(void (*)(int))" they always balance.
  int depth = 0;
  for (std::size_t i = signature.close + 1; i-- > 0;) {
    if (text[i] == ')') ++depth;
    if (text[i] == '(' && --depth == 0) {
      signature.open = i;
      break;
    }
  }
  if (signature.open == std::string::npos) {
    signature.open = text.size();
    signature.close = std::string::npos;
    return signature;
  }
  // A template's text starts with its return type: the name begins after the last blank outside of
  // all brackets.
  depth = 0;
  for (std::size_t i = signature.open; i-- > 0;) {
    if (closes(text[i])) ++depth;
    if (opens(text[i])) --depth;
    if (text[i] == ' ' && depth == 0) {
      signature.begin = i + 1;
      break;
    }
  }
  return signature;
}

}  // namespace

std::string demangled_kernel_name(const std::string& symbol) {
  const auto text = demangle(symbol);
  if (!text) return symbol;
  const Signature signature = split(*text);
  return text->substr(signature.begin, signature.open - signature.begin);
}

std::vector<std::string> parameter_types(const std::string& symbol) {
  std::vector<std::string> types;
  const auto text = demangle(symbol);
  if (!text) return types;
  const Signature signature = split(*text);
  if (signature.close == std::string::npos) return types;
  std::string type;
  int depth = 0;
  const auto finish = [&] {
    const std::size_t first = type.find_first_not_of(' ');
    if (first != std::string::npos) types.push_back(type.substr(first));
    type.clear();
  };
  for (std::size_t i = signature.open + 1; i < signature.close; ++i) {
    const char c = (*text)[i];
    if (opens(c)) ++depth;
    if (closes(c)) --depth;
    if (c == ',' && depth == 0) {
      finish();
    } else {
      type += c;
    }
  }
  finish();
  return types;
}

bool same_kernel_name(std::string_view a, std::string_view b) noexcept {
  std::size_t i = 0;
  std::size_t j = 0;
  while (true) {
    while (i < a.size() && a[i] == ' ') ++i;
    while (j < b.size() && b[j] == ' ') ++j;
    if (i == a.size() || j == b.size()) return i == a.size() && j == b.size();
    if (a[i++] != b[j++]) return false;
  }
}

}  // namespace contextune::gpu
