#include "intercept/host/name_pattern.hpp"

#include <array>
#include <cctype>

#include <contextune/error.hpp>

#include "intercept/host/pattern_size.hpp"
#include "intercept/host/roomy_stack.hpp"

namespace contextune::intercept {
namespace {

bool has_back_reference(const std::string& expression) {
  for (std::size_t i = 0; i + 1 < expression.size(); ++i) {
    if (expression[i] != '\\') continue;
    if (std::isdigit(static_cast<unsigned char>(expression[++i])) != 0) return true;
  }
  return false;
}

}  // namespace

NamePattern::NamePattern(const std::string& expression) {
  constexpr std::size_t most_shown = 200;
  const std::string shown =
      expression.size() > most_shown ? expression.substr(0, most_shown) + "..." : expression;
  const std::string what = "the regular expression \"" + shown + "\" cannot be read: ";
  if (has_back_reference(expression)) throw Error(what + "it holds a back reference");
  if (const std::string why = why_too_large(expression); !why.empty()) throw Error(what + why);
  auto compiled = std::make_unique<regex_t>();
  // libc recurses while it compiles, and never while it matches.
  const int result = on_roomy_stack(
      [&] { return regcomp(compiled.get(), expression.c_str(), REG_EXTENDED | REG_NOSUB); });
  if (result != 0) {
    std::array<char, 128> text{};
    regerror(result, compiled.get(), text.data(), text.size());
    throw Error(what + text.data());
  }
  compiled_ = std::shared_ptr<const regex_t>(compiled.release(), [](const regex_t* expired) {
    auto* owned = const_cast<regex_t*>(expired);
    regfree(owned);
    delete owned;
  });
}

bool NamePattern::finds(const std::string& name) const noexcept {
  return regexec(compiled_.get(), name.c_str(), 0, nullptr, 0) == 0;
}

}  // namespace contextune::intercept
