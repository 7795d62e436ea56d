/* NVTX ranges. The NVTX that is compiled into each image of the program loads what
 * NVTX_INJECTION64_PATH names, which is this library, and asks it for callbacks. A tool that the
 * user named there is in CONTEXTUNE_NVTX_CHAIN: it is initialised first, and our callbacks call
 * its. */
#include "frontend.h"
#include "nvtx_names.h"

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_export_table);
EXPORT int InitializeInjectionNvtxExtension(void* module);

/* The user's callbacks: 0 while unknown, 1 for none. The same for all images, or not wrapped. */
static uintptr_t theirs_core[NVTX_CBID_CORE_SIZE];
static uintptr_t theirs_core2[NVTX_CBID_CORE2_SIZE];
enum { no_callback = 1 };

#define THEIRS(table, id, type) \
  (theirs_##table[id] > no_callback ? (type)(theirs_##table[id]) : (type)NULL)
#define CORE(name) THEIRS(core, NVTX_CBID_CORE_##name, nvtx##name##_impl_fntype)
#define CORE2(name) THEIRS(core2, NVTX_CBID_CORE2_##name, nvtx##name##_impl_fntype)

enum { wide_bytes = 512 };

static void tell(enum contextune_range_kind kind, const char* domain, const char* name,
                 uint64_t id) {
  const struct contextune_core* core = contextune_load_core();
  if (core == NULL || contextune_thread.depth != 0) {
    return;
  }
  const int error = contextune_enter(core);
  core->range(kind, domain, name, id);
  contextune_leave(error);
}

static const char* text_of(const char* text) {
  return text != NULL ? text : "";
}

static const char* message_of(const nvtxEventAttributes_t* event, char* buffer) {
  if (event == NULL) {
    return "";
  }
  switch (event->messageType) {
    case NVTX_MESSAGE_TYPE_ASCII:
      return text_of(event->message.ascii);
    case NVTX_MESSAGE_TYPE_UNICODE:
      return contextune_nvtx_utf8(event->message.unicode, buffer, wide_bytes);
    case NVTX_MESSAGE_TYPE_REGISTERED:
      return contextune_nvtx_name(event->message.registered);
    default:
      return "";
  }
}

/* Ids of our own, where no tool gives any. */
static uint64_t next_id(void) {
  static uint64_t last;
  return __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
}

/* ---- ranges of the default domain ---- */

static int push_a(const char* message) {
  const nvtxRangePushA_impl_fntype theirs = CORE(RangePushA);
  const int level = theirs != NULL ? theirs(message) : NVTX_NO_PUSH_POP_TRACKING;
  tell(contextune_range_push, "", text_of(message), 0);
  return level;
}

static int push_w(const wchar_t* message) {
  char buffer[wide_bytes];
  const nvtxRangePushW_impl_fntype theirs = CORE(RangePushW);
  const int level = theirs != NULL ? theirs(message) : NVTX_NO_PUSH_POP_TRACKING;
  tell(contextune_range_push, "", contextune_nvtx_utf8(message, buffer, sizeof buffer), 0);
  return level;
}

static int push_ex(const nvtxEventAttributes_t* event) {
  char buffer[wide_bytes];
  const nvtxRangePushEx_impl_fntype theirs = CORE(RangePushEx);
  const int level = theirs != NULL ? theirs(event) : NVTX_NO_PUSH_POP_TRACKING;
  tell(contextune_range_push, "", message_of(event, buffer), 0);
  return level;
}

static int pop(void) {
  tell(contextune_range_pop, "", NULL, 0);
  const nvtxRangePop_impl_fntype theirs = CORE(RangePop);
  return theirs != NULL ? theirs() : NVTX_NO_PUSH_POP_TRACKING;
}

static nvtxRangeId_t start_a(const char* message) {
  const nvtxRangeStartA_impl_fntype theirs = CORE(RangeStartA);
  const nvtxRangeId_t id = theirs != NULL ? theirs(message) : next_id();
  tell(contextune_range_start, "", text_of(message), id);
  return id;
}

static nvtxRangeId_t start_w(const wchar_t* message) {
  char buffer[wide_bytes];
  const nvtxRangeStartW_impl_fntype theirs = CORE(RangeStartW);
  const nvtxRangeId_t id = theirs != NULL ? theirs(message) : next_id();
  tell(contextune_range_start, "", contextune_nvtx_utf8(message, buffer, sizeof buffer), id);
  return id;
}

static nvtxRangeId_t start_ex(const nvtxEventAttributes_t* event) {
  char buffer[wide_bytes];
  const nvtxRangeStartEx_impl_fntype theirs = CORE(RangeStartEx);
  const nvtxRangeId_t id = theirs != NULL ? theirs(event) : next_id();
  tell(contextune_range_start, "", message_of(event, buffer), id);
  return id;
}

static void end(nvtxRangeId_t id) {
  tell(contextune_range_end, "", NULL, id);
  const nvtxRangeEnd_impl_fntype theirs = CORE(RangeEnd);
  if (theirs != NULL) {
    theirs(id);
  }
}

/* ---- ranges of other domains ---- */

static int domain_push_ex(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  char buffer[wide_bytes];
  const nvtxDomainRangePushEx_impl_fntype theirs = CORE2(DomainRangePushEx);
  const int level = theirs != NULL ? theirs(domain, event) : NVTX_NO_PUSH_POP_TRACKING;
  tell(contextune_range_push, contextune_nvtx_name(domain), message_of(event, buffer), 0);
  return level;
}

static int domain_pop(nvtxDomainHandle_t domain) {
  tell(contextune_range_pop, contextune_nvtx_name(domain), NULL, 0);
  const nvtxDomainRangePop_impl_fntype theirs = CORE2(DomainRangePop);
  return theirs != NULL ? theirs(domain) : NVTX_NO_PUSH_POP_TRACKING;
}

static nvtxRangeId_t domain_start_ex(nvtxDomainHandle_t domain,
                                     const nvtxEventAttributes_t* event) {
  char buffer[wide_bytes];
  const nvtxDomainRangeStartEx_impl_fntype theirs = CORE2(DomainRangeStartEx);
  const nvtxRangeId_t id = theirs != NULL ? theirs(domain, event) : next_id();
  tell(contextune_range_start, contextune_nvtx_name(domain), message_of(event, buffer), id);
  return id;
}

static void domain_end(nvtxDomainHandle_t domain, nvtxRangeId_t id) {
  tell(contextune_range_end, contextune_nvtx_name(domain), NULL, id);
  const nvtxDomainRangeEnd_impl_fntype theirs = CORE2(DomainRangeEnd);
  if (theirs != NULL) {
    theirs(domain, id);
  }
}

/* Domains and strings keep the tool's handles, where it has any; a domain that is destroyed keeps
 * its name, as nothing may be opened in it any more. */
static nvtxDomainHandle_t domain_create_a(const char* name) {
  const nvtxDomainCreateA_impl_fntype theirs = CORE2(DomainCreateA);
  if (theirs == NULL) {
    return (nvtxDomainHandle_t)(uintptr_t)contextune_nvtx_intern(text_of(name));
  }
  const nvtxDomainHandle_t handle = theirs(name);
  contextune_nvtx_remember(handle, text_of(name));
  return handle;
}

static nvtxDomainHandle_t domain_create_w(const wchar_t* name) {
  char buffer[wide_bytes];
  const char* text = contextune_nvtx_utf8(name, buffer, sizeof buffer);
  const nvtxDomainCreateW_impl_fntype theirs = CORE2(DomainCreateW);
  if (theirs == NULL) {
    return (nvtxDomainHandle_t)(uintptr_t)contextune_nvtx_intern(text);
  }
  const nvtxDomainHandle_t handle = theirs(name);
  contextune_nvtx_remember(handle, text);
  return handle;
}

static nvtxStringHandle_t register_a(nvtxDomainHandle_t domain, const char* string) {
  const nvtxDomainRegisterStringA_impl_fntype theirs = CORE2(DomainRegisterStringA);
  if (theirs == NULL) {
    return (nvtxStringHandle_t)(uintptr_t)contextune_nvtx_intern(text_of(string));
  }
  const nvtxStringHandle_t handle = theirs(domain, string);
  contextune_nvtx_remember(handle, text_of(string));
  return handle;
}

static nvtxStringHandle_t register_w(nvtxDomainHandle_t domain, const wchar_t* string) {
  char buffer[wide_bytes];
  const char* text = contextune_nvtx_utf8(string, buffer, sizeof buffer);
  const nvtxDomainRegisterStringW_impl_fntype theirs = CORE2(DomainRegisterStringW);
  if (theirs == NULL) {
    return (nvtxStringHandle_t)(uintptr_t)contextune_nvtx_intern(text);
  }
  const nvtxStringHandle_t handle = theirs(domain, string);
  contextune_nvtx_remember(handle, text);
  return handle;
}

/* ---- injection ---- */

enum { max_callbacks = 16 };
_Static_assert((int)NVTX_CBID_CORE_SIZE <= max_callbacks, "more callbacks than places for them");
_Static_assert((int)NVTX_CBID_CORE2_SIZE <= max_callbacks, "more callbacks than places for them");

struct module {
  NvtxFunctionTable table;
  unsigned int size;
  NvtxFunctionPointer initial[max_callbacks];
};

static bool open_module(const NvtxExportTableCallbacks* callbacks, NvtxCallbackModule id,
                        unsigned int num_known, struct module* module) {
  if (callbacks->GetModuleFunctionTable(id, &module->table, &module->size) == 0 ||
      module->table == NULL) {
    return false;
  }
  module->size = module->size < num_known ? module->size : num_known;
  for (unsigned int i = 0; i < module->size; ++i) {
    module->initial[i] = module->table[i] != NULL ? *module->table[i] : NULL;
  }
  return true;
}

static void restore(const struct module* module) {
  for (unsigned int i = 0; i < module->size; ++i) {
    if (module->table[i] != NULL) {
      *module->table[i] = module->initial[i];
    }
  }
}

static void install(const struct module* module, unsigned int id, uintptr_t* theirs_table,
                    NvtxFunctionPointer ours) {
  if (id >= module->size || module->table[id] == NULL) {
    return;
  }
  NvtxFunctionPointer* slot = module->table[id];
  const uintptr_t theirs = *slot != module->initial[id] ? (uintptr_t)*slot : no_callback;
  uintptr_t known = 0;
  if (!__atomic_compare_exchange_n(&theirs_table[id], &known, theirs, false, __ATOMIC_ACQ_REL,
                                   __ATOMIC_ACQUIRE) &&
      known != theirs) {
    return; /* the tool treats this image differently: that is its right, and we do not see it */
  }
  *slot = ours;
}

/* An entry point of the user's tool, or NULL. */
static void* find_in_chain(const char* name, void** library) {
  const char* path = contextune_variable(contextune_variable_nvtx_chain);
  if (path == NULL || path[0] == '\0') {
    return NULL;
  }
  contextune_find_dlsym();
  *library = dlopen(path, RTLD_LAZY);
  return *library != NULL ? contextune_real_dlsym(*library, name) : NULL;
}

static void start_chain(NvtxGetExportTableFunc_t get_export_table, const struct module* core,
                        const struct module* core2) {
  void* library = NULL;
  const NvtxInitializeInjectionNvtxFunc_t start =
      (NvtxInitializeInjectionNvtxFunc_t)find_in_chain("InitializeInjectionNvtx2", &library);
  if (start != NULL && start != &InitializeInjectionNvtx2 && start(get_export_table) != 0) {
    return;
  }
  /* As NVTX does with a tool that declines. */
  restore(core);
  restore(core2);
  if (library != NULL) {
    dlclose(library);
  }
}

/* NCCL marks each of its calls, with a payload that is made only where a tool is there. Without one
 * the ranges of its image stay as they are without us, unless regions are marked by them. */
static bool nobody_wants(NvtxGetExportTableFunc_t of_image) {
  const char* chain = contextune_variable(contextune_variable_nvtx_chain);
  const char* regions = contextune_variable(contextune_variable_region);
  Dl_info image;
  return (chain == NULL || chain[0] == '\0') &&
         (regions == NULL || strcasestr(regions, "nccl") == NULL) &&
         dladdr((const void*)of_image, &image) != 0 && image.dli_fname != NULL &&
         strstr(image.dli_fname, "libnccl.so") != NULL;
}

static int start_for_image(NvtxGetExportTableFunc_t get_export_table) {
  if (nobody_wants(get_export_table)) {
    return 0;
  }
  const NvtxExportTableCallbacks* callbacks =
      (const NvtxExportTableCallbacks*)get_export_table(NVTX_ETID_CALLBACKS);
  struct module core = {0};
  struct module core2 = {0};
  if (callbacks == NULL || callbacks->struct_size < sizeof *callbacks ||
      !open_module(callbacks, NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_SIZE, &core) ||
      !open_module(callbacks, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_SIZE, &core2)) {
    return 0;
  }
  start_chain(get_export_table, &core, &core2);
#define INSTALL(module, id, function) \
  install(&module, id, theirs_##module, (NvtxFunctionPointer)(function))
#define CONTEXTUNE_NVTX(table, NAME, name, function) \
  INSTALL(table, NVTX_CBID_##NAME##_##name, function);
#include "registry/nvtx.def"
#undef CONTEXTUNE_NVTX
#undef INSTALL
  return 1;
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_export_table) {
  const int error = errno;
  const int is_started = start_for_image(get_export_table);
  errno = error;
  return is_started;
}

/* Payloads and counters are of no interest to us, but the user's tool may want them. */
int InitializeInjectionNvtxExtension(void* module) {
  const int error = errno;
  void* library = NULL;
  int (*const start)(void*) =
      (int (*)(void*))find_in_chain("InitializeInjectionNvtxExtension", &library);
  errno = error;
  return start != NULL && start != &InitializeInjectionNvtxExtension ? start(module) : 0;
}
