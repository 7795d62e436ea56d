// The entry points that only the simulated driver has.
#include <simcuda/simcuda.h>

#include <algorithm>

#include "contexts.hpp"

using namespace simcuda;

#pragma GCC visibility push(default)
extern "C" {

unsigned simcuda_version(void) {
  return SIMCUDA_VERSION;
}

int simcuda_register_kernels(const struct simcuda_kernel_table* table) {
  if (table == nullptr) return -1;
  const DriverLock lock(driver().mutex);
  return register_kernels(*table) ? 0 : -1;
}

double simcuda_host_time(void) {
  const DriverLock lock(driver().mutex);
  return driver().host_time;
}

void simcuda_host_work(double seconds) {
  const DriverLock lock(driver().mutex);
  if (seconds > 0) driver().host_time += seconds;
}

void simcuda_host_wait_until(double time) {
  const DriverLock lock(driver().mutex);
  driver().host_time = std::max(driver().host_time, time);
}

double simcuda_last_kernel_time(int device) {
  const DriverLock lock(driver().mutex);
  const auto index = static_cast<std::size_t>(device);
  return index < driver().devices.size() ? driver().devices[index]->last_kernel_time : 0.0;
}

double simcuda_last_kernel_noise_free_time(int device) {
  const DriverLock lock(driver().mutex);
  const auto index = static_cast<std::size_t>(device);
  return index < driver().devices.size() ? driver().devices[index]->last_kernel_noise_free_time
                                         : 0.0;
}

void simcuda_set_noise(double relative_sigma, uint64_t seed) {
  const DriverLock lock(driver().mutex);
  for (std::size_t i = 0; i < driver().devices.size(); ++i)
    driver().devices[i]->noise = Noise(relative_sigma, seed + i * 7919);
}

int simcuda_set_fault(const char* text) {
  if (text == nullptr) return -1;
  const auto faults = Faults::parse(text);
  if (!faults) return -1;
  const DriverLock lock(driver().mutex);
  driver().faults = *faults;
  return 0;
}

void simcuda_set_order(int deferred, uint64_t seed) {
  DriverLock lock(driver().mutex);
  driver().pending.finish_all(nullptr, lock);
  driver().pending.set_order(deferred != 0 ? std::optional<std::uint64_t>(seed) : std::nullopt);
}

void simcuda_flush_cache(int device) {
  const DriverLock lock(driver().mutex);
  const auto index = static_cast<std::size_t>(device);
  if (index < driver().devices.size()) driver().devices[index]->cost.cache().flush();
}

void simcuda_listen(const struct simcuda_listener* listener) {
  const DriverLock lock(driver().mutex);
  driver().listener.store(listener, std::memory_order_release);
}

uint32_t simcuda_context_id(void* context) {
  const DriverLock lock(driver().mutex);
  const Context* const found = driver().handles.find<Context>(context);
  return found == nullptr ? 0 : found->id;
}

int simcuda_context_device(void* context) {
  const DriverLock lock(driver().mutex);
  const Context* const found = driver().handles.find<Context>(context);
  return found == nullptr ? -1 : found->device;
}

uint32_t simcuda_stream_id(void* context, void* stream, int per_thread) {
  const DriverLock lock(driver().mutex);
  Context* const of =
      context == nullptr ? current_context_or_null() : driver().handles.find<Context>(context);
  if (of == nullptr) return 0;
  if (const Stream* const found = driver().handles.find<Stream>(stream)) return found->id;
  const bool mine = stream == CU_STREAM_PER_THREAD || (stream == nullptr && per_thread != 0);
  return default_stream(*of, mine ? NullStream::per_thread : NullStream::legacy).id;
}

}  // extern "C"
#pragma GCC visibility pop
