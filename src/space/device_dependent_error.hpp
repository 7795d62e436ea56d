#pragma once

#include <contextune/error.hpp>

namespace contextune::space {

/// A space file that cannot be used, and that had asked what its device is: for another one it may
/// be fine.
class DeviceDependentError : public Error {
 public:
  using Error::Error;
};

}  // namespace contextune::space
