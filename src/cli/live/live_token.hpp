#pragma once

#include <string>
#include <string_view>

namespace contextune::cli {

/// The word in the address without which nothing is shown. Other users of the machine can reach
/// the port as well.
class LiveToken {
 public:
  /// A fresh one of 128 random bits. @throws Error if the system has none to give
  LiveToken();

  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  /// Takes as long for a near miss as for any other word of the same length.
  [[nodiscard]] bool is(std::string_view word) const noexcept;

 private:
  std::string text_;
};

}  // namespace contextune::cli
