#include "api/last_error.hpp"

#include <algorithm>
#include <cstring>

namespace contextune::api {
namespace {

// Trivially destructible: a thread may fail after its thread_local objects are gone.
thread_local char text_of_thread[1024];

}  // namespace

int fail(std::string_view text) noexcept {
  const std::size_t length = std::min(text.size(), sizeof text_of_thread - 1);
  std::memcpy(text_of_thread, text.data(), length);
  text_of_thread[length] = '\0';
  return -1;
}

const char* last_error() noexcept {
  return text_of_thread;
}

}  // namespace contextune::api
