#pragma once

#include <exception>
#include <memory>
#include <type_traits>

namespace contextune::intercept {

/// Calls `body` on a thread of its own with a stack of a mebibyte, and waits for it. The call may
/// take more than the stack of a program's thread, which may be small. Where no thread is to be
/// had, calls it on this one.
void call_on_roomy_stack(void (*body)(void*), void* with) noexcept;

/// The same, with what the body returns, or throws.
template <class Body>
auto on_roomy_stack(Body&& body) {
  using Result = std::invoke_result_t<Body&>;
  struct Call {
    std::remove_reference_t<Body>* body;
    std::unique_ptr<Result> result;
    std::exception_ptr failure;
  } call{std::addressof(body), nullptr, nullptr};
  call_on_roomy_stack(
      [](void* with) {
        auto& mine = *static_cast<Call*>(with);
        try {
          mine.result = std::make_unique<Result>((*mine.body)());
        } catch (...) {
          mine.failure = std::current_exception();
        }
      },
      &call);
  if (call.failure) std::rethrow_exception(call.failure);
  return std::move(*call.result);
}

}  // namespace contextune::intercept
