#include "intercept/host/roomy_stack.hpp"

#include <pthread.h>

#include <new>

#include "host/own_thread.hpp"

namespace contextune::intercept {
namespace {

constexpr std::size_t stack_bytes = std::size_t{1} << 20;

struct Work {
  void (*body)(void*);
  void* with;
};

void* work_on(void* argument) {
  const auto& work = *static_cast<Work*>(argument);
  host::name_this_thread("contextune-read");
  work.body(work.with);
  return nullptr;
}

/// False: there is no thread to be had.
bool start_roomy_thread(pthread_t& thread, Work& work) noexcept {
  pthread_attr_t attributes{};
  if (pthread_attr_init(&attributes) != 0) return false;
  bool is_started = false;
  try {
    const host::SignalsBlocked blocked;
    host::OwnThreadStart start;
    is_started = pthread_attr_setstacksize(&attributes, stack_bytes) == 0 &&
                 pthread_create(&thread, &attributes, work_on, &work) == 0;
    if (is_started) start.begun(thread);
  } catch (const std::bad_alloc&) {
    // Nor is there memory to know it as ours.
  }
  (void)pthread_attr_destroy(&attributes);
  return is_started;
}

}  // namespace

void call_on_roomy_stack(void (*body)(void*), void* with) noexcept {
  Work work{body, with};
  pthread_t thread{};
  if (start_roomy_thread(thread, work))
    (void)pthread_join(thread, nullptr);
  else
    body(with);
}

}  // namespace contextune::intercept
