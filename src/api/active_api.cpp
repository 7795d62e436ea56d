#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "api/process.hpp"
#include "intercept/host/link_fault.hpp"

namespace contextune::api {
namespace {

int collect_name(dl_phdr_info* info, std::size_t, void* names) {
  // Exceptions may not pass through libc; without memory there is no other copy to be found.
  try {
    if (info->dlpi_name != nullptr && *info->dlpi_name != '\0') {
      static_cast<std::vector<std::string>*>(names)->emplace_back(info->dlpi_name);
    }
  } catch (...) {
    return 1;
  }
  return 0;
}

/// Another copy of this library that the frontend has attached. By symbol, in every loaded object:
/// a copy that was preloaded or came with a plugin is in nobody's search scope.
const contextune_api* find_attached_copy() noexcept {
  std::vector<std::string> names;
  dl_iterate_phdr(&collect_name, &names);
  for (const std::string& name : names) {
    void* object = dlopen(name.c_str(), RTLD_NOLOAD | RTLD_LAZY);
    if (object == nullptr) continue;
    void* found = dlsym(object, "contextune_api_v1");
    dlclose(object);
    if (found == nullptr) continue;
    const contextune_api* api = reinterpret_cast<decltype(&contextune_api_v1)>(found)();
    if (api == nullptr || api == own_api() || api->version != CONTEXTUNE_API_VERSION ||
        api->size < sizeof(contextune_api)) {
      continue;
    }
    if (api->attached() != 0) return api;
  }
  return nullptr;
}

/// Looking through all objects is dear, and another copy rare: in the first 16 calls, and then in
/// calls 32, 64, 128, ...
bool worth_looking() noexcept {
  static std::atomic<std::uint64_t> calls{0};
  const std::uint64_t call = calls.fetch_add(1, std::memory_order_relaxed) + 1;
  return call <= 16 || (call & (call - 1)) == 0;
}

}  // namespace

const contextune_api* active_api() noexcept {
  static std::atomic<const contextune_api*> decided{nullptr};
  if (const contextune_api* api = decided.load(std::memory_order_acquire)) return api;
  if (intercept::Runtime::get() != nullptr) {
    decided.store(own_api(), std::memory_order_release);
    return own_api();
  }
  if (!intercept::has_frontend() || !worth_looking()) return own_api();
  const contextune_api* other = find_attached_copy();
  if (other == nullptr) return own_api();
  decided.store(other, std::memory_order_release);
  return other;
}

}  // namespace contextune::api
