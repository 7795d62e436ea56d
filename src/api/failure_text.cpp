#include "api/failure_text.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace contextune::api {
namespace {

// Trivially destructible: a thread may fail after its thread_local objects are gone.
thread_local char failure_of_thread[1024];
thread_local std::size_t length_of_failure = 0;

}  // namespace

void note_failure(const char* text) noexcept {
  length_of_failure = text == nullptr ? 0 : std::min(std::strlen(text), sizeof failure_of_thread);
  if (length_of_failure > 0) std::memcpy(failure_of_thread, text, length_of_failure);
}

std::string_view take_failure() noexcept {
  return {failure_of_thread, std::exchange(length_of_failure, 0)};
}

std::string taken_failure_clause() {
  const std::string_view text = take_failure();
  return text.empty() ? std::string() : ": " + std::string(text);
}

}  // namespace contextune::api
