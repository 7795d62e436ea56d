#pragma once

#include <regex.h>

#include <memory>
#include <string>

namespace contextune::intercept {

/// A POSIX extended regular expression that looks for something in kernel names. libc's matcher
/// neither recurses nor goes back: it runs on the program's threads, whose stacks may be small,
/// over names that may have thousands of characters. Back references, the exception, are refused,
/// and so is what takes long to compile (pattern_size.hpp).
/// A value; any thread.
class NamePattern {
 public:
  /// @throws Error that says what is wrong with the expression
  explicit NamePattern(const std::string& expression);

  [[nodiscard]] bool finds(const std::string& name) const noexcept;

 private:
  std::shared_ptr<const regex_t> compiled_;
};

}  // namespace contextune::intercept
