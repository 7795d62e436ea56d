#pragma once

#include <exception>
#include <string>
#include <utility>

#include "nccl_api.hpp"

namespace simnccl {

/// What makes an entry point return something else than ncclSuccess.
struct Error {
  ncclResult_t code = ncclInternalError;
  std::string text;
};

inline void require(bool holds, ncclResult_t code, const char* text) {
  if (!holds) throw Error{code, text};
}

/// The text that ncclGetLastError gives out; of the calling thread.
std::string& last_error();

/// Runs the body of an entry point and turns errors into codes.
template <class Body>
ncclResult_t api(Body&& body) noexcept {
  try {
    return body();
  } catch (const Error& error) {
    last_error() = error.text;
    return error.code;
  } catch (const std::exception& error) {
    last_error() = error.what();
    return ncclSystemError;
  }
}

}  // namespace simnccl
