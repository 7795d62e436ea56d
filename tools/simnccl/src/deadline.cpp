#include "deadline.hpp"

#include <unistd.h>

#include <cstdio>
#include <mutex>
#include <thread>
#include <utility>

#include "settings.hpp"

namespace simnccl {

namespace {

// Never destroyed: its thread runs until the process ends.
struct Watch {
  std::mutex mutex;
  std::list<Wait> waits;
  bool started = false;

  static Watch& instance() {
    static auto* const watch = new Watch;
    return *watch;
  }

  [[noreturn]] void run() {
    const std::chrono::duration<double> longest(Settings::instance().deadline_seconds);
    for (;;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      const std::lock_guard lock(mutex);
      for (const Wait& wait : waits) {
        if (std::chrono::steady_clock::now() - wait.since < longest) continue;
        std::fprintf(stderr, "simnccl: waited %g s for other ranks: %s\n", longest.count(),
                     wait.describe().c_str());
        _exit(Waiting::exit_status);
      }
    }
  }
};

}  // namespace

Waiting::Waiting(std::function<std::string()> describe) {
  if (Settings::instance().deadline_seconds <= 0) return;
  Watch& watch = Watch::instance();
  const std::lock_guard lock(watch.mutex);
  wait_ = watch.waits.insert(watch.waits.end(),
                             {std::move(describe), std::chrono::steady_clock::now()});
  noted_ = true;
  if (std::exchange(watch.started, true)) return;
  std::thread([&watch] { watch.run(); }).detach();
}

Waiting::~Waiting() {
  if (!noted_) return;
  Watch& watch = Watch::instance();
  const std::lock_guard lock(watch.mutex);
  watch.waits.erase(wait_);
}

}  // namespace simnccl
