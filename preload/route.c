/* What dlsym asks before it goes on: see dlsym.S.
 *
 * Our own exports cannot answer a lookup: they carry a hidden version (exports.map), which direct
 * references accept and dlsym does not see. So the real dlsym gives, with RTLD_DEFAULT, RTLD_NEXT
 * or any handle, exactly what it would give without us, errors included; and only where that is
 * a function of libcuda, of CUPTI or of NCCL itself is it replaced. */
#include "nccl_wrappers.h"

#include <dlfcn.h>

void* contextune_route_dlsym(void* handle, const char* name, const void* caller);

/* The first definition in the global scope, or in the libraries that the caller brought along. */
static void* default_definition(const char* name, const void* caller) {
  void* found = contextune_real_dlsym(RTLD_DEFAULT, name);
  if (found != NULL) {
    return found;
  }
  void* object = contextune_open_object_of(caller);
  if (object != NULL) {
    found = contextune_real_dlsym(object, name);
    dlclose(object);
  }
  return found;
}

/* RTLD_NEXT searches the global scope only. */
static bool driver_is_global(void) {
  static const char* const probes[] = {"cuDriverGetVersion", "cuDeviceGetCount", "cuGetErrorName"};
  for (size_t i = 0; i < sizeof probes / sizeof probes[0]; ++i) {
    void* real = contextune_real_dlsym(contextune_libcuda, probes[i]);
    if (real != NULL && contextune_real_dlsym(RTLD_DEFAULT, probes[i]) == real) {
      return true;
    }
  }
  return false;
}

static bool finds_driver(void* handle, const char* name, const void* caller, void* real) {
  if (handle == RTLD_DEFAULT) {
    return default_definition(name, caller) == real;
  }
  if (handle == RTLD_NEXT) {
    return contextune_next_definition(caller, name, false) == real && driver_is_global();
  }
  /* Another interposer of dlsym, after us, may have an answer of its own: then that one stands. */
  return contextune_next_dlsym(handle, name) == real;
}

static void* route_driver(void* handle, const char* name, const void* caller,
                          enum contextune_fn fn) {
  if (!contextune_find_driver()) {
    return NULL;
  }
  const bool is_registered = fn != contextune_fn_count;
  void* real =
      is_registered ? contextune_real_or_null(fn) : contextune_real_dlsym(contextune_libcuda, name);
  if (real == NULL || !finds_driver(handle, name, caller, real)) {
    return NULL;
  }
  void* found = is_registered ? contextune_wrapper(fn) : contextune_route_pointer(real, name, 0, 0);
  /* dlerror is left as the program's own successful lookup would leave it. */
  contextune_real_dlsym(contextune_libcuda, name);
  return found;
}

static void* found_by(void* handle, const char* name, const void* caller) {
  if (handle == RTLD_DEFAULT) {
    return default_definition(name, caller);
  }
  if (handle == RTLD_NEXT) {
    return contextune_next_definition(caller, name, false);
  }
  return contextune_next_dlsym(handle, name);
}

static void* route_cupti(void* handle, const char* name, const void* caller,
                         enum contextune_fn fn) {
  void* real = found_by(handle, name, caller);
  if (real == NULL) {
    return NULL;
  }
  /* With RTLD_NEXT we may be wrong about the scope, so the real dlsym has the last word; and a
   * second copy of CUPTI has no wrapper left. Then the lookup counts as the use. */
  void* wrapper = handle != RTLD_NEXT ? contextune_cupti_wrapper(fn, real) : NULL;
  if (wrapper == NULL) {
    contextune_cupti_use(fn, caller);
    return NULL;
  }
  return wrapper;
}

/* Of several copies of NCCL each has its own wrappers, so that a call goes where the lookup went.
 */
static void* route_nccl(void* handle, const char* name, const void* caller,
                        enum contextune_nccl_fn fn) {
  void* real = found_by(handle, name, caller);
  const unsigned int copy =
      real != NULL ? contextune_nccl_copy_of(real, fn) : CONTEXTUNE_NCCL_COPIES;
  if (copy == CONTEXTUNE_NCCL_COPIES || (handle == RTLD_NEXT && !contextune_nccl_is_global(copy))) {
    return NULL;
  }
  void* wrapper = contextune_nccl_wrapper(fn, copy, real);
  contextune_real_dlsym(contextune_nccl_of_copy(copy, fn).library, name); /* as in route_driver */
  return wrapper;
}

/* Called by dlsym.S. NULL: go on to the real dlsym. */
void* contextune_route_dlsym(void* handle, const char* name, const void* caller) {
  contextune_find_dlsym();
  const enum contextune_fn fn = contextune_find_name(name);
  const enum contextune_nccl_fn nccl =
      fn == contextune_fn_count ? contextune_find_nccl_name(name) : contextune_nccl_count;
  const bool is_drivers = contextune_is_drivers_name(name);
  const bool is_listed = fn != contextune_fn_count || nccl != contextune_nccl_count;
  if (CONTEXTUNE_LIKELY(!is_listed && !is_drivers) || contextune_thread.depth != 0) {
    return NULL;
  }
  const int error = errno;
  void* wrapper = NULL;
  if (contextune_is_tool(caller)) {
    wrapper = NULL;
  } else if (nccl != contextune_nccl_count) {
    wrapper = route_nccl(handle, name, caller, nccl);
  } else {
    wrapper =
        is_drivers ? route_driver(handle, name, caller, fn) : route_cupti(handle, name, caller, fn);
  }
  errno = error;
  return wrapper;
}
