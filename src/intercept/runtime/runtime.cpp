#include "intercept/runtime/runtime.hpp"

#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <string_view>

#include "environment/root_folder.hpp"
#include "environment/variables.hpp"
#include "gpu/driver/process_exit.hpp"
#include "intercept/host/environment_options.hpp"
#include "intercept/host/hot_words.hpp"
#include "intercept/host/link_fault.hpp"
#include "intercept/host/own_arithmetic.hpp"
#include "intercept/runtime/process_runtime.hpp"

namespace contextune::intercept {
namespace {

/// Null while there is none, in a forked child, and after a failed start.
constexpr std::atomic<ProcessRuntime*>& running = hot_words.running;
constinit std::atomic<const char*> limited{
    "CUDA has not been initialised yet, so there is nothing to tune"};

constinit std::mutex starting;
void (*started)(Runtime&) = nullptr;  // guarded by `starting`

/// Made on purpose never to be freed: threads may read it for ever.
const char* for_ever(const std::string& text) {
  auto* kept = new std::string(text);
  return kept->c_str();
}

void in_forked_child() {
  running.store(nullptr, std::memory_order_release);
}

void before_exit() noexcept {
  if (ProcessRuntime* runtime = running.load(std::memory_order_acquire)) runtime->end_replays();
}

void at_exit(int, void*) {
  const OwnArithmetic arithmetic;
  if (ProcessRuntime* runtime = running.load(std::memory_order_acquire)) runtime->exiting();
}

/// By the user, for a program that may know nothing of contextune.
bool is_preloaded() {
  const char* const libraries = variable("LD_PRELOAD");
  return libraries != nullptr &&
         std::string_view(libraries).find("libcontextune_preload") != std::string_view::npos;
}

ProcessRuntime* start_once(const contextune_frontend* frontend) {
  keep_variables();
  keep_root_folder();
  std::vector<std::string> faults;
  Options options = options_from_environment(Options{}, faults);
  if (variable("CONTEXTUNE_REGION") == nullptr && is_preloaded()) options.region = "auto";
  if (options.disable) {
    limited.store("contextune is switched off: CONTEXTUNE_DISABLE is set");
    return nullptr;
  }
  find_misspelt_variables(faults);
  auto* made = new ProcessRuntime(frontend, options, faults);
  limited.store(frontend != nullptr
                    ? ""
                    : for_ever("Launches are not seen, and only tunables are tuned. " +
                               find_link_fault().sentence));
  (void)pthread_atfork(nullptr, nullptr, in_forked_child);
  (void)on_exit(at_exit, nullptr);
  gpu::set_before_exit(before_exit);
  gpu::watch_exit();
  return made;
}

}  // namespace

Runtime* Runtime::start(const contextune_frontend* frontend) noexcept {
  const OwnArithmetic arithmetic;  // the threads that it starts have it from here
  static bool tried = false;
  try {
    const std::lock_guard lock(starting);
    if (!tried) {
      tried = true;
      ProcessRuntime* made = start_once(frontend);
      if (made != nullptr && started != nullptr) started(made->runtime());
      running.store(made, std::memory_order_release);
    }
  } catch (const std::exception& error) {
    limited.store(for_ever(error.what()));
  }
  return get();
}

void Runtime::at_start(void (*call)(Runtime&)) noexcept {
  const std::lock_guard lock(starting);
  started = call;
  if (Runtime* runtime = get()) call(*runtime);
}

Runtime* Runtime::get() noexcept {
  ProcessRuntime* const process = running.load(std::memory_order_acquire);
  return process == nullptr ? nullptr : &process->runtime();
}

const char* Runtime::why_limited() noexcept {
  return limited.load(std::memory_order_acquire);
}

}  // namespace contextune::intercept
