#include "frontend.h"

#include <dlfcn.h>
#include <string.h>

void* contextune_libcuda;
struct contextune_hot contextune_hot __attribute__((aligned(64))) = {
    .armed = 1, /* so that the first launch is seen, and attaches */
    .launch = contextune_undecided_launch,
};
void* contextune_bound[contextune_fn_count];

/* The driver's functions by address, for what cuGetProcAddress returns. `which` is a number of the
 * registry, or contextune_fn_count and that of another function. */
struct routed {
  void* address;
  unsigned int which;
};
enum { num_known = contextune_fn_count + contextune_num_others };
static struct routed routed[num_known];
static unsigned int num_routed;

/* Stands for what this driver does not have. Called with any arguments, which it does not look at.
 */
static CUresult not_in_driver(void) {
  return CUDA_ERROR_NOT_INITIALIZED;
}

void* contextune_real_or_null(enum contextune_fn fn) {
  void* real = (unsigned int)fn < contextune_fn_count ? contextune_hot.real[fn] : NULL;
  return real != (void*)&not_in_driver ? real : NULL;
}

static void* address_of(unsigned int which, void* libcuda) {
  return which < contextune_fn_count
             ? contextune_real_or_null((enum contextune_fn)which)
             : contextune_real_dlsym(libcuda, contextune_others[which - contextune_fn_count]);
}

/* Insertion sort: some hundred entries, once, and no call of a function that may allocate. */
static unsigned int sort_by_address(struct routed* sorted, void* libcuda) {
  unsigned int count = 0;
  for (unsigned int which = 0; which < num_known; ++which) {
    void* address = address_of(which, libcuda);
    if (address == NULL) {
      continue;
    }
    unsigned int place = count++;
    for (; place > 0 && sorted[place - 1].address > address; --place) {
      sorted[place] = sorted[place - 1];
    }
    sorted[place] = (struct routed){address, which};
  }
  return count;
}

/* Every thread that gets here before the tables are published writes the same values. */
static void fill_tables(void* libcuda) {
  for (unsigned int i = 0; i < contextune_fn_count; ++i) {
    const enum contextune_fn fn = (enum contextune_fn)i;
    if (contextune_is_cupti(fn)) {
      continue;
    }
    void* real = contextune_real_dlsym(libcuda, contextune_name(fn));
    __atomic_store_n(&contextune_hot.real[fn], real != NULL ? real : (void*)&not_in_driver,
                     __ATOMIC_RELAXED);
    /* Another library of the program may stand before the driver with the same name, as a tracer
     * does that was linked in: what the program calls by name goes on to that one, as without us,
     * and what that one looks up is our observing wrapper. */
    void* next = contextune_real_dlsym(RTLD_NEXT, contextune_name(fn));
    void* bound = next != NULL && next != real ? next : contextune_inner[fn];
    __atomic_store_n(&contextune_bound[fn], bound, __ATOMIC_RELAXED);
  }
  struct routed sorted[num_known];
  const unsigned int count = sort_by_address(sorted, libcuda);
  for (unsigned int i = 0; i < count; ++i) {
    __atomic_store_n(&routed[i].address, sorted[i].address, __ATOMIC_RELAXED);
    __atomic_store_n(&routed[i].which, sorted[i].which, __ATOMIC_RELAXED);
  }
  __atomic_store_n(&num_routed, count, __ATOMIC_RELAXED);
}

static bool look_for_driver(void) {
  contextune_find_dlsym();
  /* This reference is kept: a program that closes the driver still holds pointers into it, and so
   * do we. */
  void* libcuda = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
  if (libcuda == NULL) {
    return false;
  }
  if (contextune_real_dlsym(libcuda, "cuInit") == NULL) {
    dlclose(libcuda);
    return false;
  }
  fill_tables(libcuda);
  /* Names that are missing have left an error behind, which the program would find. */
  contextune_real_dlsym(libcuda, "cuInit");
  void* expected = NULL;
  if (!__atomic_compare_exchange_n(&contextune_libcuda, &expected, libcuda, false, __ATOMIC_ACQ_REL,
                                   __ATOMIC_ACQUIRE)) {
    dlclose(libcuda);
  } else if (!contextune_is_switched_off()) {
    contextune_prepare_calls_ended();
  }
  return true;
}

bool contextune_find_driver(void) {
  if (CONTEXTUNE_LIKELY(__atomic_load_n(&contextune_libcuda, __ATOMIC_ACQUIRE) != NULL)) {
    return true;
  }
  const int error = errno;
  const bool found = look_for_driver();
  errno = error;
  return found;
}

void* contextune_next_by_name(const char* name, void* real) {
  void* next = contextune_real_dlsym(RTLD_NEXT, name);
  return next != NULL ? next : real != NULL ? real : (void*)&not_in_driver;
}

void* contextune_bind(enum contextune_fn fn) {
  if (contextune_find_driver()) {
    return __atomic_load_n(&contextune_bound[fn], __ATOMIC_RELAXED);
  }
  /* No driver under its own name: perhaps a library that stands for it. */
  const int error = errno;
  void* next = contextune_next_by_name(contextune_name(fn), NULL);
  errno = error;
  return next;
}

void* contextune_wrapper(enum contextune_fn fn) {
  /* As a rule the exported one, so that a function has one address however it was obtained. */
  return contextune_bound[fn] == contextune_inner[fn] ? contextune_exported[fn]
                                                      : contextune_inner[fn];
}

/* ---- routing by pointer ---- */

static bool is_per_thread(const char* name) {
  const size_t length = strlen(name);
  return length > 5 &&
         (strcmp(name + length - 5, "_ptsz") == 0 || strcmp(name + length - 5, "_ptds") == 0);
}

/* How well an entry fits what was asked for, among those that share one address. */
static int fit_of(enum contextune_fn fn, const char* symbol, int version, cuuint64_t flags) {
  const char* name = contextune_name(fn);
  const bool wants_per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  int fit = is_per_thread(name) == wants_per_thread ? 2 : 0;
  if (strcmp(symbol, "cuGetProcAddress") == 0) {
    /* The two forms differ in the number of their arguments: the version decides. */
    return fit + ((fn == contextune_fn_cuGetProcAddress_v2) == (version >= 12000) ? 4 : 0);
  }
  if (strcmp(name, symbol) == 0) {
    return fit + 1;
  }
  return fit;
}

void* contextune_route_pointer(void* pointer, const char* symbol, int version, cuuint64_t flags) {
  if (!contextune_find_driver()) {
    return pointer;
  }
  unsigned int low = 0;
  unsigned int high = num_routed;
  while (low < high) {
    const unsigned int middle = low + (high - low) / 2;
    if (routed[middle].address < pointer) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  int best = -1;
  void* wrapper = NULL;
  unsigned int other = contextune_num_others;
  for (; low < num_routed && routed[low].address == pointer; ++low) {
    if (routed[low].which >= contextune_fn_count) {
      const unsigned int number = routed[low].which - contextune_fn_count;
      other = number < other ? number : other;
      continue;
    }
    const enum contextune_fn fn = (enum contextune_fn)routed[low].which;
    const int fit = fit_of(fn, symbol != NULL ? symbol : "", version, flags);
    if (fit > best) {
      best = fit;
      wrapper = contextune_wrapper(fn);
    }
  }
  return wrapper != NULL ? wrapper : contextune_guard(pointer, other);
}
