#include "driver_link.hpp"

#include <dlfcn.h>

namespace simcupti {

namespace {

template <class Function>
void find(void* library, const char* name, Function*& to) {
  to = reinterpret_cast<Function*>(dlsym(library, name));
}

DriverLink link() {
  DriverLink driver;
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr || dlsym(library, "simcuda_version") == nullptr) return driver;
  find(library, "simcuda_listen", driver.listen);
  find(library, "simcuda_host_time", driver.host_time);
  find(library, "simcuda_host_work", driver.host_work);
  find(library, "simcuda_context_id", driver.context_id);
  find(library, "simcuda_context_device", driver.context_device);
  find(library, "simcuda_stream_id", driver.stream_id);
  return driver;
}

}  // namespace

const DriverLink& DriverLink::instance() {
  static const DriverLink driver = link();
  return driver;
}

}  // namespace simcupti
