#include "intercept/name_pattern.hpp"

#include <array>
#include <cctype>

#include <contextune/error.hpp>

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
  const std::string what = "the regular expression \"" + expression + "\" cannot be read: ";
  if (has_back_reference(expression)) throw Error(what + "it holds a back reference");
  auto compiled = std::make_unique<regex_t>();
  const int result = regcomp(compiled.get(), expression.c_str(), REG_EXTENDED | REG_NOSUB);
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
