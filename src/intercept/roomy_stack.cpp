#include "intercept/roomy_stack.hpp"

#include <pthread.h>

#include <csignal>

namespace contextune::intercept {
namespace {

constexpr std::size_t stack_bytes = std::size_t{1} << 20;

struct Work {
  void (*body)(void*);
  void* with;
};

void* work_on(void* argument) {
  const auto& work = *static_cast<Work*>(argument);
  work.body(work.with);
  return nullptr;
}

}  // namespace

void call_on_roomy_stack(void (*body)(void*), void* with) noexcept {
  Work work{body, with};
  pthread_attr_t attributes{};
  bool is_started = false;
  pthread_t thread{};
  if (pthread_attr_init(&attributes) == 0) {
    // Handlers of the program do not run on a thread that it does not know.
    sigset_t all;
    sigfillset(&all);
    is_started = pthread_attr_setstacksize(&attributes, stack_bytes) == 0 &&
                 pthread_attr_setsigmask_np(&attributes, &all) == 0 &&
                 pthread_create(&thread, &attributes, work_on, &work) == 0;
    pthread_attr_destroy(&attributes);
  }
  if (is_started) {
    static_cast<void>(pthread_setname_np(thread, "contextune-read"));
    pthread_join(thread, nullptr);
  } else {
    body(with);
  }
}

}  // namespace contextune::intercept
