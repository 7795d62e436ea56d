// Signals, forks and ends of the process in the middle of a replay.
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>
#include <utility>

#include "moments.hpp"
#include "scenarios.hpp"

namespace awkward {
namespace {

CUdeviceptr state_memory = 0;
std::atomic<bool> driver_ended{false};
std::atomic<bool> region_ended{true};
Helper* joined_helper = nullptr;

void print_now(const char* when) {
  std::printf("%s: %08x\n", when, digest(state_memory));
}

void on_signal(void (*handler)(int)) {
  std::signal(SIGUSR1, handler);
}

/// Visits the region; in the middle of the first repetition, or after the region, `action` is done.
void visit_with(Device& device, std::function<void()> action) {
  Moments::get().when_repeated(std::move(action));
  {
    const Range range(region);
    device.launch(state_memory);
  }
  Moments::get().unless_repeated();
}

bool has_cupti() {
  void* const library = dlopen("libcupti.so.13", RTLD_LAZY | RTLD_NOLOAD);
  return library != nullptr && dlclose(library) == 0;
}

/// A thread that ends the process in the middle of the first call of CUPTI, or when it is joined.
class EndWithCupti {
 public:
  void join() {
    joined_ = true;
    thread_.join();
  }
  [[nodiscard]] bool has_begun() const { return begun_; }

 private:
  std::atomic<bool> joined_{false}, begun_{false};
  std::thread thread_{[this] {
    while (!joined_ && !has_cupti()) std::this_thread::yield();
    begun_ = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::exit(5);
  }};
};

}  // namespace

int handler_reads_memory(Device& device) {
  state_memory = new_memory();
  on_signal([](int) { print_now("checkpoint"); });
  visit_with(device, [] { (void)std::raise(SIGUSR1); });
  print_memory("memory", state_memory);
  return 0;
}

int handler_of_the_process_reads_memory(Device& device) {
  state_memory = new_memory();
  on_signal([](int) { print_now("checkpoint"); });
  visit_with(device, [] { (void)kill(getpid(), SIGUSR1); });
  print_memory("memory", state_memory);
  return 0;
}

int handler_of_a_timer(Device& device) {
  state_memory = new_memory();
  // As of a profiler, or of a language's runtime.
  static std::atomic<int> ticks{0};
  std::signal(SIGPROF, [](int) { ++ticks; });
  Moments::get().at_every_repetition([] { (void)std::raise(SIGPROF); });
  for (int visit = 0; visit < 9; ++visit) {
    const Range range(region);
    device.launch(state_memory);
  }
  print_memory("memory", state_memory);
  return 0;
}

int ignored_signals(Device& device) {
  state_memory = new_memory();
  std::signal(SIGUSR1, SIG_IGN);
  // SIGCHLD as where a child ends, SIGWINCH as where a terminal's size changes.
  Moments::get().at_every_repetition([] {
    for (const int signal : {SIGUSR1, SIGCHLD, SIGWINCH}) (void)std::raise(signal);
  });
  {
    const Range range(region);
    device.launch(state_memory);
  }
  print_memory("memory", state_memory);
  return 0;
}

int handler_exits(Device& device) {
  state_memory = new_memory();
  std::atexit([] { print_now("at exit"); });
  on_signal([](int) { std::exit(6); });
  visit_with(device, [] { (void)std::raise(SIGUSR1); });
  return 0;
}

namespace {

std::byte* kept_back = nullptr;
std::size_t num_kept_back = 0;

}  // namespace

int handler_exits_within_malloc(Device& device) {
  state_memory = new_memory();
  {
    const Range range(region);
    device.launch(state_memory);
  }
  print_memory("memory", state_memory);
  // As any signal may come in there, and this one does: where malloc is to write next.
  std::signal(SIGSEGV, [](int) {
    (void)mprotect(kept_back, num_kept_back, PROT_READ | PROT_WRITE);
    std::exit(6);
  });
  constexpr std::size_t bytes = 100'000;
  constexpr std::uintptr_t page = 4096;
  (void)mallopt(M_TOP_PAD, 100 * bytes);
  std::uintptr_t end = 0;  // of what lies highest: the pieces between are gone first
  for (int i = 0; i < 40; ++i) end = reinterpret_cast<std::uintptr_t>(std::malloc(bytes)) + bytes;
  kept_back = reinterpret_cast<std::byte*>((end + page) / page * page);
  num_kept_back = static_cast<std::size_t>(static_cast<std::byte*>(sbrk(0)) - kept_back);
  (void)mprotect(kept_back, num_kept_back, PROT_NONE);
  return std::malloc(bytes) == nullptr ? 1 : 0;
}

int handler_exits_and_joins(Device& device) {
  state_memory = new_memory();
  Helper reader(device.context, [] { print_now("the helper"); });
  joined_helper = &reader;
  std::atexit([] {
    joined_helper->join();
    print_now("at exit");
  });
  on_signal([](int) { std::exit(6); });
  visit_with(device, [] {
    joined_helper->begin();
    (void)std::raise(SIGUSR1);
  });
  return 0;
}

int other_thread_exits(Device& device) {
  state_memory = new_memory();
  std::atexit([] { print_now("at exit"); });
  Helper ending(device.context, [] { std::exit(5); });
  visit_with(device, [&] { ending.begin(); });
  ending.join();
  return 0;
}

int other_thread_ends_the_driver(Device& device) {
  state_memory = new_memory();
  Helper ending(device.context, [] { std::exit(5); });
  visit_with(device, [&] { ending.begin(); });
  ending.join();
  return 0;
}

int other_thread_ends_cupti(Device& device) {
  state_memory = new_memory();
  Helper ending(device.context, [] { std::exit(5); });
  bool has_begun = false;
  Moments::get().at_every_repetition([&] {
    if (has_begun || !has_cupti()) return;
    has_begun = true;
    ending.begin();
  });
  {
    const Range range(region);
    device.launch(state_memory);
  }
  Moments::get().at_every_repetition(nullptr);
  if (!has_begun) ending.begin();
  ending.join();
  return 0;
}

int other_thread_exits_while_cupti_begins(Device& device) {
  state_memory = new_memory();
  EndWithCupti ending;
  for (int visit = 0; visit < 20 && !ending.has_begun(); ++visit) {
    const Range range(region);
    device.launch(state_memory);
  }
  ending.join();
  return 0;
}

int other_thread_exits_while_cupti_begins_live(Device& device) {
  state_memory = new_memory();
  const CUstream stream = new_stream();
  CUdeviceptr address = 0;
  (void)new_host_word(address);  // which makes each visit one that cannot be repeated
  EndWithCupti ending;
  for (int visit = 0; visit < 20; ++visit) {
    const Range range(region);
    if (ending.has_begun()) break;  // the entry began CUPTI
    check(cuStreamWaitValue32(stream, address, 0, CU_STREAM_WAIT_VALUE_GEQ), "cuStreamWaitValue32");
    device.launch(state_memory, stream);
  }
  ending.join();
  return 0;
}

int main_returns_while_cupti_begins(Device& device) {
  state_memory = new_memory();
  static std::atomic<bool> is_through{false};
  std::thread([device] {  // outlives main
    check(cuCtxSetCurrent(device.context), "cuCtxSetCurrent");
    for (int visit = 0; visit < 20 && !has_cupti(); ++visit) {
      const Range range(region);
      device.launch(state_memory);
    }
    is_through = true;
    while (true) pause();
  })
      .detach();
  while (!is_through && !has_cupti()) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return 5;
}

void watch_end_of_driver() {
  (void)std::atexit([] {
    driver_ended = true;
    wait_until([] { return region_ended.load(); });
  });
}

int driver_ends_in_the_region(Device& device) {
  state_memory = new_memory();
  region_ended = false;
  Helper ending(device.context, [] { std::exit(5); });
  {
    const Range range(region);
    device.launch(state_memory);
    ending.begin();
    wait_until([] { return driver_ended.load(); });
  }
  std::puts("after the region");
  region_ended = true;
  ending.join();
  return 0;
}

int driver_ends_while_repeated(Device& device) {
  state_memory = new_memory();
  region_ended = false;
  Helper ending(device.context, [] { std::exit(5); });
  visit_with(device, [&] {
    ending.begin();
    wait_until([] { return driver_ended.load(); });
  });
  std::puts("after the region");
  region_ended = true;
  ending.join();
  return 0;
}

int thread_cancelled(Device& device) {
  state_memory = new_memory();
  pthread_t thread{};
  // What cancels takes effect where the thread says so, and not in a call of the driver or of NVTX.
  const auto work = [](void* of) -> void* {
    auto& its = *static_cast<Device*>(of);
    check(cuCtxSetCurrent(its.context), "cuCtxSetCurrent");
    (void)pthread_cancel(pthread_self());
    {
      const Range range(region);
      its.launch(state_memory);
    }
    pthread_testcancel();
    return nullptr;
  };
  if (pthread_create(&thread, nullptr, work, &device) != 0) return 1;
  void* result = nullptr;
  (void)pthread_join(thread, &result);
  std::printf("cancelled: %d\n", result == PTHREAD_CANCELED);
  print_memory("memory", state_memory);
  return 0;
}

int fork_while_repeated(Device& device) {
  state_memory = new_memory();
  pid_t child = -1;
  // Not on the thread that repeats: that one is in the middle of a call.
  Helper forking(device.context, [&] {
    child = fork();
    if (child == 0) {
      // What a child may still do: mark ranges, and end as any process.
      { const Range range(other_region); }
      std::exit(9);
    }
    int status = -1;
    wait_until([&] { return waitpid(child, &status, WNOHANG) == child; });
    if (status == -1) (void)kill(child, SIGKILL);
    std::printf("the child ended with %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  });
  visit_with(device, [&] { forking.begin(); });
  forking.join();
  print_memory("memory", state_memory);
  return 0;
}

}  // namespace awkward
