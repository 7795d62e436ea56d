#include "moments.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "device.hpp"

namespace awkward {
namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string text;
  std::getline(file, text);
  return text;
}

bool sleeps_or_has_ended(pid_t thread) {
  const std::string status = read("/proc/self/task/" + std::to_string(thread) + "/stat");
  const auto end_of_name = status.rfind(')');
  return end_of_name == std::string::npos || status.compare(end_of_name, 3, ") S") == 0;
}

void do_once(std::function<void()>& action) {
  if (const auto once = std::exchange(action, nullptr)) once();
}

}  // namespace

Moments& Moments::get() {
  static Moments moments;
  return moments;
}

void Moments::kernel_runs() {
  if (++run_ <= made_) return do_once(in_next_launch_);
  if (at_every_repetition_) at_every_repetition_();
  if (!when_repeated_) return;
  constexpr char text[] = "in a replay\n";
  (void)!write(STDERR_FILENO, text, sizeof text - 1);
  do_once(when_repeated_);
}

void Moments::unless_repeated() {
  do_once(when_repeated_);
}

Helper::Helper(CUcontext context, std::function<void()> work)
    : thread_([this, context, work = std::move(work)] {
        check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
        id_ = static_cast<pid_t>(syscall(SYS_gettid));
        id_.notify_one();
        may_begin_.acquire();
        begun_ = true;
        work();
      }) {
  id_.wait(0);
}

void Helper::begin() {
  may_begin_.release();
  wait_until([this] { return begun_ && sleeps_or_has_ended(id_); });
}

void wait_until(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!condition() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

bool has_thread(const char* name) {
  for (const auto& one : std::filesystem::directory_iterator("/proc/self/task")) {
    if (read(one.path() / "comm") == name) return true;
  }
  return false;
}

}  // namespace awkward
