#include <contextune/export.hpp>

#include "intercept/runtime/hooks.hpp"
#include "intercept/runtime/runtime.hpp"

/// How the frontend reaches all of this: see preload/contextune_abi.h.
extern "C" CONTEXTUNE_EXPORT const contextune_core* contextune_core_v1(
    const contextune_frontend* frontend) {
  using namespace contextune::intercept;
  if (frontend == nullptr || frontend->version != CONTEXTUNE_ABI_VERSION ||
      frontend->size < sizeof(contextune_frontend)) {
    return nullptr;
  }
  set_hook_frontend(frontend);
  // A runtime that started without the frontend, because the driver comes first, stays so.
  const Runtime* const runtime = Runtime::start(frontend);
  return runtime != nullptr && runtime->sees_launches() ? hook_table() : nullptr;
}
