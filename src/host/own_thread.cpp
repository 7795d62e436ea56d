#include "host/own_thread.hpp"

#include <pthread.h>

#include <cstring>
#include <thread>
#include <utility>

namespace contextune::host {

void name_this_thread(const char* name) noexcept {
  // A longer one would be refused, and the thread taken for the program's.
  char cut[16] = {};
  (void)std::strncpy(cut, name, sizeof cut - 1);
  (void)pthread_setname_np(pthread_self(), cut);
}

void start_own_thread(const char* name, std::function<void()> body) {
  const SignalsBlocked blocked;
  std::thread([name, body = std::move(body)] {
    // By itself: another thread would open a file to name it.
    name_this_thread(name);
    body();
  }).detach();
}

}  // namespace contextune::host
