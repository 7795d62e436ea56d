#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <string>

namespace simnccl {

/// One wait, as the watching thread sees it.
struct Wait {
  std::function<std::string()> describe;
  std::chrono::steady_clock::time_point since;
};

/// As long as it lives, something waits for other ranks. When SIMNCCL_DEADLINE_S is set and it
/// lives longer than that, a thread prints what `describe` says and ends the process with status
/// 86; without that variable it costs nothing and waits for ever. `describe` may be called on any
/// thread.
class Waiting {
 public:
  static constexpr int exit_status = 86;

  explicit Waiting(std::function<std::string()> describe);
  ~Waiting();
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  std::list<Wait>::iterator wait_;
  bool noted_ = false;
};

}  // namespace simnccl
