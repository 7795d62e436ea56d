#pragma once

#include <stdexcept>

namespace contextune {

/// Something that contextune was given cannot be used. The message says what, where (file and
/// line, option or variable), and what to do next.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace contextune
