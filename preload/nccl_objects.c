/* Which NCCL a call is for. A process may have several: a framework's own, one in a plugin, one
 * that a program linked statically and exports. So nothing of NCCL is linked, and there is no one
 * real function. */
#include "nccl_wrappers.h"

#include <dlfcn.h>
#include <string.h>

/* With the p of the profiling interface, under which a tool that wraps NCCL as we do calls on. */
static const char* const names[contextune_nccl_count] = {
#define CONTEXTUNE_NCCL(name, ...) [contextune_fn_##name] = "p" #name,
#define CONTEXTUNE_NCCL_LISTED(...)
#include "registry/nccl.def"
#undef CONTEXTUNE_NCCL
#undef CONTEXTUNE_NCCL_LISTED
};

const char* contextune_nccl_name(enum contextune_nccl_fn fn) {
  return (unsigned int)fn < contextune_nccl_count ? names[fn] + 1 : "?";
}

enum contextune_nccl_fn contextune_find_nccl_name(const char* name) {
  if (name == NULL || !contextune_begins(name, "nccl") || name[4] < 'A' || name[4] > 'Z') {
    return contextune_nccl_count;
  }
  unsigned int fn = 0;
  while (fn < contextune_nccl_count && !contextune_is_same(names[fn] + 1, name)) {
    ++fn;
  }
  return (enum contextune_nccl_fn)fn;
}

/* ---- copies ---- */

enum { empty, being_filled, filled };

struct copy {
  uint32_t state;
  const void* base;
  void* library; /* kept open: we hold pointers into it, as the program does */
  void* real[contextune_nccl_count];
};
static struct copy copies[CONTEXTUNE_NCCL_COPIES];

static const void* base_of(const void* address) {
  Dl_info info;
  return dladdr(address, &info) != 0 ? info.dli_fbase : NULL;
}

static void* open_object_of(const void* address) {
  void* library = contextune_open_object_of(address);
  return library != NULL ? library : dlopen(NULL, RTLD_LAZY);
}

/* The function in that object only, under the name with p where it has that. */
static void* definition_in(void* library, const void* base, enum contextune_nccl_fn fn) {
  void* found = contextune_real_dlsym(library, names[fn]);
  if (found == NULL || base_of(found) != base) {
    found = contextune_real_dlsym(library, names[fn] + 1);
  }
  return found != NULL && base_of(found) == base ? found : NULL;
}

/* A tool that wraps part of NCCL makes no communicators of its own. */
static bool is_nccl(void* library, const void* base) {
  void* version = contextune_real_dlsym(library, "ncclGetVersion");
  return version != NULL && base_of(version) == base &&
         definition_in(library, base, contextune_fn_ncclCommInitRank) != NULL;
}

static unsigned int find_copy(const void* base) {
  for (unsigned int i = 0; i < CONTEXTUNE_NCCL_COPIES; ++i) {
    if (__atomic_load_n(&copies[i].state, __ATOMIC_ACQUIRE) == filled && copies[i].base == base) {
      return i;
    }
  }
  return CONTEXTUNE_NCCL_COPIES;
}

/* Two threads at once may give one copy two numbers, which does no harm. */
static unsigned int add_copy(void* library, const void* base) {
  for (unsigned int i = 0; i < CONTEXTUNE_NCCL_COPIES; ++i) {
    uint32_t expected = empty;
    if (!__atomic_compare_exchange_n(&copies[i].state, &expected, being_filled, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
      continue;
    }
    copies[i].base = base;
    copies[i].library = library;
    for (unsigned int fn = 0; fn < contextune_nccl_count; ++fn) {
      copies[i].real[fn] = definition_in(library, base, (enum contextune_nccl_fn)fn);
    }
    __atomic_store_n(&copies[i].state, filled, __ATOMIC_RELEASE);
    return i;
  }
  return CONTEXTUNE_NCCL_COPIES;
}

unsigned int contextune_nccl_copy_of(void* real, enum contextune_nccl_fn fn) {
  const void* base = base_of(real);
  unsigned int copy = base != NULL ? find_copy(base) : CONTEXTUNE_NCCL_COPIES;
  if (copy == CONTEXTUNE_NCCL_COPIES && base != NULL) {
    void* library = open_object_of(real);
    if (library != NULL && is_nccl(library, base)) {
      copy = add_copy(library, base);
    }
    if (library != NULL && copy == CONTEXTUNE_NCCL_COPIES) {
      dlclose(library);
    }
  }
  /* The two names are one address, unless something stands in between. */
  if (copy < CONTEXTUNE_NCCL_COPIES &&
      contextune_real_dlsym(copies[copy].library, names[fn] + 1) != real) {
    return CONTEXTUNE_NCCL_COPIES;
  }
  return copy;
}

struct contextune_nccl_target contextune_nccl_of_copy(unsigned int copy,
                                                      enum contextune_nccl_fn fn) {
  return (struct contextune_nccl_target){copies[copy].real[fn], copies[copy].library};
}

int contextune_nccl_version(void* library) {
  int (*const ask)(int*) = (int (*)(int*))contextune_real_dlsym(library, "ncclGetVersion");
  int version = 0;
  return ask != NULL && ask(&version) == ncclSuccess ? version : 0;
}

bool contextune_nccl_is_global(unsigned int copy) {
  static const char* const probes[] = {"pncclGetVersion", "ncclGetVersion", "ncclGetErrorString"};
  for (size_t i = 0; i < sizeof probes / sizeof probes[0]; ++i) {
    void* real = contextune_real_dlsym(copies[copy].library, probes[i]);
    if (real != NULL && contextune_real_dlsym(RTLD_DEFAULT, probes[i]) == real) {
      return true;
    }
  }
  return false;
}

/* ---- direct calls ---- */

struct contextune_nccl_target contextune_nccl_global[contextune_nccl_count];

/* Of a caller outside the global scope; a call site calls one function. */
struct site {
  uint32_t state;
  enum contextune_nccl_fn fn;
  const void* caller;
  struct contextune_nccl_target target;
};
enum { num_sites = 256, max_probes = 8 };
static struct site sites[num_sites];

static size_t slot_of(const void* caller, size_t probe) {
  return (((uintptr_t)caller * 0x9E3779B97F4A7C15U >> 40) + probe) % num_sites;
}

static bool find_site(enum contextune_nccl_fn fn, const void* caller,
                      struct contextune_nccl_target* target) {
  for (size_t probe = 0; probe < max_probes; ++probe) {
    const struct site* site = &sites[slot_of(caller, probe)];
    if (__atomic_load_n(&site->state, __ATOMIC_ACQUIRE) != filled) {
      return false;
    }
    if (site->caller == caller && site->fn == fn) {
      *target = site->target;
      return true;
    }
  }
  return false;
}

static void keep_site(enum contextune_nccl_fn fn, const void* caller,
                      struct contextune_nccl_target target) {
  for (size_t probe = 0; probe < max_probes; ++probe) {
    struct site* site = &sites[slot_of(caller, probe)];
    uint32_t expected = empty;
    if (__atomic_compare_exchange_n(&site->state, &expected, being_filled, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED)) {
      site->fn = fn;
      site->caller = caller;
      site->target = target;
      __atomic_store_n(&site->state, filled, __ATOMIC_RELEASE);
      return;
    }
  }
}

/* `real` is what the caller's reference would have been bound to: perhaps a tool's, which then
 * calls on itself. */
static struct contextune_nccl_target target_of(enum contextune_nccl_fn fn, void* real) {
  const unsigned int copy = contextune_nccl_copy_of(real, fn);
  if (copy < CONTEXTUNE_NCCL_COPIES) {
    return contextune_nccl_of_copy(copy, fn);
  }
  return (struct contextune_nccl_target){real, open_object_of(real)};
}

static void* find_local(enum contextune_nccl_fn fn, const void* caller) {
  void* found = NULL;
  void* object = contextune_open_object_of(caller);
  if (object != NULL) {
    found = contextune_real_dlsym(object, names[fn] + 1);
    dlclose(object);
  }
  if (found != NULL) {
    return found;
  }
  /* It was linked against nothing, and whatever loaded it brought NCCL along. */
  void* library = dlopen("libnccl.so.2", RTLD_NOLOAD | RTLD_LAZY);
  if (library != NULL) {
    found = contextune_real_dlsym(library, names[fn] + 1);
    dlclose(library);
  }
  if (found == NULL) {
    /* A jump in place of a call leaves us with an address of the caller's caller. */
    found = contextune_next_definition((const void*)&contextune_nccl_bind, names[fn] + 1, false);
  }
  return found;
}

static struct contextune_nccl_target look_for(enum contextune_nccl_fn fn, const void* caller) {
  struct contextune_nccl_target target = {NULL, NULL};
  contextune_find_dlsym();
  void* real = contextune_real_dlsym(RTLD_NEXT, names[fn] + 1);
  const bool is_global = real != NULL;
  if (!is_global) {
    real = find_local(fn, caller);
  }
  if (real == NULL) {
    return (struct contextune_nccl_target){NULL, NULL};
  }
  target = target_of(fn, real);
  if (is_global) {
    __atomic_store_n(&contextune_nccl_global[fn].library, target.library, __ATOMIC_RELAXED);
    __atomic_store_n(&contextune_nccl_global[fn].real, target.real, __ATOMIC_RELEASE);
  } else {
    keep_site(fn, caller, target);
  }
  dlerror(); /* whatever was missing in here is not the program's */
  return target;
}

struct contextune_nccl_target contextune_nccl_bind(enum contextune_nccl_fn fn, const void* caller) {
  struct contextune_nccl_target target = {NULL, NULL};
  if (!find_site(fn, caller, &target)) {
    const int error = errno;
    target = look_for(fn, caller);
    errno = error;
  }
  return target;
}
