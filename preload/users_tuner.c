#include "users_tuner.h"

#include "nccl_wrappers.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char* const symbols[] = {
    [2] = "ncclTunerPlugin_v2", [3] = "ncclTunerPlugin_v3", [4] = "ncclTunerPlugin_v4",
    [5] = "ncclTunerPlugin_v5", [6] = "ncclTunerPlugin_v6",
};
enum { oldest_version = 2, newest_known = 6 };

/* ---- where NCCL would have looked ---- */

/* "STATIC_PLUGIN", or the beginning of it: in the program itself. */
static bool is_in_program(const char* name) {
  return strncasecmp(name, "STATIC_PLUGIN", strlen(name)) == 0;
}

static bool is_file_name(const char* name) {
  const size_t length = strlen(name);
  return strchr(name, '/') != NULL ||
         (strncmp(name, "lib", 3) == 0 && length >= 3 && strcmp(name + length - 3, ".so") == 0);
}

static void* open_by(const char* kind, const char* name, int flags) {
  if (is_in_program(name)) {
    return dlopen(NULL, RTLD_NOW);
  }
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL | flags);
  char completed[512];
  if (library == NULL && !is_file_name(name) &&
      snprintf(completed, sizeof completed, "libnccl-%s-%s.so", kind, name) <
          (int)sizeof completed) {
    library = dlopen(completed, RTLD_NOW | RTLD_LOCAL | flags);
  }
  return library;
}

/* A network plugin may have a tuner in it. NCCL has opened it by now if there is one. */
static void* open_net_plugin(void) {
  char list[1024];
  const char* names = list;
  if (!contextune_nccl_setting(contextune_variable_nccl_net_plugin, list, sizeof list) ||
      list[0] == '\0') {
    return dlopen("libnccl-net.so", RTLD_NOLOAD | RTLD_NOW);
  }
  void* library = NULL;
  while (library == NULL && *names != '\0') {
    char name[256];
    const size_t length = strcspn(names, ",");
    if (length != 0 && length < sizeof name) {
      memcpy(name, names, length);
      name[length] = '\0';
      library = open_by("net", name, RTLD_NOLOAD);
    }
    names += length + (names[length] == ',');
  }
  return library;
}

static void* open_library(void) {
  const char* name = contextune_tuner_users_name();
  if (name != NULL && strcasecmp(name, "none") == 0) {
    return NULL;
  }
  void* library =
      name != NULL ? open_by("tuner", name, 0) : dlopen("libnccl-tuner.so", RTLD_NOW | RTLD_LOCAL);
  return library != NULL ? library : open_net_plugin();
}

/* Looked for once, as by NCCL; and kept, while NCCL closes a plugin with the last communicator and
 * opens it again. */
static void* users_library(void) {
  static void* opened;
  static bool looked; /* set after `opened`: who sees that it was looked for sees what was found */
  if (!__atomic_load_n(&looked, __ATOMIC_ACQUIRE)) {
    void* library = open_library();
    void* expected = NULL;
    if (library != NULL && !__atomic_compare_exchange_n(&opened, &expected, library, false,
                                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
      dlclose(library);
    }
    __atomic_store_n(&looked, true, __ATOMIC_RELEASE);
    dlerror(); /* what is not there is not the program's concern */
  }
  return __atomic_load_n(&opened, __ATOMIC_ACQUIRE);
}

static const void* find_plugin(void* library, const char* symbol) {
  const void* found = contextune_real_dlsym(library, symbol);
  Dl_info of_found;
  Dl_info of_us;
  const bool is_ours = found != NULL && dladdr(found, &of_found) != 0 &&
                       dladdr((const void*)&contextune_users_tuner_find, &of_us) != 0 &&
                       of_found.dli_fbase == of_us.dli_fbase;
  if (!is_ours) {
    return found;
  }
  /* In the program's scope we may stand before it. */
  return contextune_next_definition((const void*)&contextune_users_tuner_find, symbol, false);
}

struct contextune_users_tuner contextune_users_tuner_find(int newest_version) {
  struct contextune_users_tuner tuner = {0, NULL, NULL};
  contextune_find_dlsym();
  void* library = users_library();
  int version = newest_version < newest_known ? newest_version : newest_known;
  for (; library != NULL && tuner.plugin == NULL && version >= oldest_version; --version) {
    tuner.plugin = find_plugin(library, symbols[version]);
    tuner.version = tuner.plugin != NULL ? version : 0;
  }
  return tuner;
}

/* ---- each version in its own form ---- */

ncclResult_t contextune_users_tuner_init(struct contextune_users_tuner* tuner,
                                         const struct contextune_tuner_setting* setting) {
  if (tuner->version == 0) {
    return ncclSuccess;
  }
  if (tuner->version >= 5) {
    return ((const struct contextune_tuner_v5*)tuner->plugin)
        ->init(&tuner->context, setting->comm, setting->nranks, setting->nnodes, setting->log,
               setting->domains, setting->constants);
  }
  /* It stands at the same place in versions 2 to 4. */
  return ((const struct contextune_tuner_v2*)tuner->plugin)
      ->init(setting->nranks, setting->nnodes, setting->log, &tuner->context);
}

/* Version 2 knows no table: NCCL tells it what the table would have told it, and sets the cell that
 * it names. */
static ncclResult_t ask_v2(const struct contextune_users_tuner* tuner,
                           const struct contextune_tuner_question* question) {
  enum { collnet_chain = 3, nvls = 4, nvls_tree = 5, simple = 2 };
  float* table = (float*)question->table;
  const int width = question->num_protocols;
  const bool has_all = question->num_algorithms > nvls_tree && width > simple;
  const int has_collnet = has_all && table[collnet_chain * width + simple] >= 0;
  const int has_nvls =
      has_all && (table[nvls * width + simple] >= 0 || table[nvls_tree * width + simple] >= 0);
  int algorithm = -1;
  int protocol = -1;
  const ncclResult_t result =
      ((const struct contextune_tuner_v2*)tuner->plugin)
          ->get_coll_info(tuner->context, question->function, question->bytes, has_collnet,
                          has_nvls, question->num_pipelined, &algorithm, &protocol,
                          question->num_channels);
  if (result == ncclSuccess && algorithm >= 0 && algorithm < question->num_algorithms &&
      protocol >= 0 && protocol < width && table[algorithm * width + protocol] >= 0) {
    table[algorithm * width + protocol] = 0;
  }
  return result;
}

ncclResult_t contextune_users_tuner_ask(const struct contextune_users_tuner* tuner,
                                        const struct contextune_tuner_question* question) {
  switch (tuner->version) {
    case 0:
      return ncclSuccess;
    case 2:
      return ask_v2(tuner, question);
    case 3:
      return ((const struct contextune_tuner_v3*)tuner->plugin)
          ->get_coll_info(tuner->context, question->function, question->bytes,
                          question->num_pipelined, question->table, question->num_algorithms,
                          question->num_protocols, question->num_channels);
    default: /* at the same place in version 4 as in those after it */
      return ((const struct contextune_tuner_v4*)tuner->plugin)
          ->get_coll_info(tuner->context, question->function, question->bytes,
                          question->num_pipelined, question->table, question->num_algorithms,
                          question->num_protocols, question->registered, question->num_channels);
  }
}

bool contextune_users_tuner_sizes_chunks(const struct contextune_users_tuner* tuner) {
  return tuner->version >= 6 &&
         ((const struct contextune_tuner_v6*)tuner->plugin)->get_chunk_size != NULL;
}

ncclResult_t contextune_users_tuner_chunk(const struct contextune_users_tuner* tuner, int function,
                                          size_t bytes, int algorithm, int protocol,
                                          int num_channels, size_t* chunk_bytes) {
  const struct contextune_tuner_v6* plugin = tuner->plugin;
  if (!contextune_users_tuner_sizes_chunks(tuner)) {
    return ncclSuccess;
  }
  return plugin->get_chunk_size(tuner->context, function, bytes, algorithm, protocol, num_channels,
                                chunk_bytes);
}

ncclResult_t contextune_users_tuner_end(const struct contextune_users_tuner* tuner) {
  /* At the same place in all versions; some leave it out. */
  const struct contextune_tuner_v2* plugin = tuner->plugin;
  return tuner->version != 0 && plugin->end != NULL ? plugin->end(tuner->context) : ncclSuccess;
}
