#pragma once

#include <pthread.h>

namespace contextune::intercept {

/// Lets nobody cancel this thread as long as it lives: pthread_cancel takes effect where a thread
/// writes, sleeps or waits, which it does in our code without the program's knowing.
class Uncancelled {
 public:
  Uncancelled() noexcept { (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~Uncancelled() { (void)pthread_setcancelstate(before_, nullptr); }
  Uncancelled(const Uncancelled&) = delete;
  Uncancelled& operator=(const Uncancelled&) = delete;

  /// The program's own code, which may be cancelled as ever, beneath ours.
  class Lifted {
   public:
    explicit Lifted(const Uncancelled& by) noexcept {
      (void)pthread_setcancelstate(by.before_, nullptr);
    }
    ~Lifted() { (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr); }
    Lifted(const Lifted&) = delete;
    Lifted& operator=(const Lifted&) = delete;
  };

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace contextune::intercept
