/* NCCL finds its tuner plugin by NCCL_TUNER_PLUGIN, at its first communicator and at the first
 * after the last has ended. So while one is made the variable names us; then it is as the user left
 * it, for the sake of children, which may run without us. What the user named is loaded behind ours
 * (users_tuner.c).
 *
 * setenv moves the array that another thread may be reading, and unsetenv its entries. Here the
 * array is only replaced by a longer copy, and entries by others: readers see one or the other. */
#include "nccl_wrappers.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VARIABLE "NCCL_TUNER_PLUGIN="

enum { longest_path = 254 }; /* NCCL cuts off what is longer */

static char ours[sizeof VARIABLE + longest_path];
static char users_name[sizeof ours]; /* a copy: the program may change its own */
static char* replaced;               /* the entry in whose place ours is; NULL: there was none */
static bool prepared;
static bool excluded;   /* a communicator was to be made that works otherwise with a plugin */
static uint32_t offers; /* calls under way */
static uint32_t state = contextune_tuner_not_yet;

enum { withdrawn, changing, offered };
static uint32_t place = withdrawn;

enum contextune_tuner_state contextune_tuner_state(void) {
  return (enum contextune_tuner_state)__atomic_load_n(&state, __ATOMIC_ACQUIRE);
}

const char* contextune_tuner_users_name(void) {
  return __atomic_load_n(&prepared, __ATOMIC_ACQUIRE) && users_name[0] != '\0' ? users_name : NULL;
}

static bool is_variable(const char* entry) {
  return strncmp(entry, VARIABLE, sizeof VARIABLE - 1) == 0;
}

/* Set by a parent that started us while it made a communicator. */
static bool is_ours(const char* entry) {
  const char* slash = strrchr(entry, '/');
  const char* self = strrchr(ours, '/');
  return slash != NULL && self != NULL && strcmp(slash, self) == 0;
}

static size_t count_entries(char* const* entries) {
  size_t count = 0;
  while (entries != NULL && entries[count] != NULL) {
    ++count;
  }
  return count;
}

static char** find_entry(bool (*is)(const char*)) {
  for (char** entry = environ; entry != NULL && *entry != NULL; ++entry) {
    if (is(*entry)) {
      return entry;
    }
  }
  return NULL;
}

static bool is_our_entry(const char* entry) {
  return entry == ours;
}

/* ---- what the user wants ---- */

static bool name_ours(void) {
  Dl_info self;
  if (dladdr((const void*)&contextune_tuner_offer, &self) == 0 || self.dli_fname == NULL ||
      strchr(self.dli_fname, '/') == NULL || strlen(self.dli_fname) > longest_path) {
    return false;
  }
  memcpy(ours, VARIABLE, sizeof VARIABLE - 1);
  memcpy(ours + sizeof VARIABLE - 1, self.dli_fname, strlen(self.dli_fname) + 1);
  return true;
}

static bool name_users(void) {
  if (!contextune_nccl_setting(contextune_variable_nccl_tuner_plugin, users_name,
                               sizeof users_name) ||
      is_ours(users_name)) {
    users_name[0] = '\0';
  }
  return strlen(users_name) + 1 < sizeof users_name;
}

static bool is_set(enum contextune_variable which) {
  char value[1];
  return contextune_nccl_setting(which, value, sizeof value);
}

static enum contextune_tuner_state prepare(void) {
  if (is_set(contextune_variable_nccl_algo) || is_set(contextune_variable_nccl_proto)) {
    return contextune_tuner_users_choice;
  }
  if (__atomic_load_n(&excluded, __ATOMIC_ACQUIRE) || is_set(contextune_variable_nccl_cta_policy)) {
    return contextune_tuner_users_policy;
  }
  return name_ours() && name_users() ? contextune_tuner_offered : contextune_tuner_no_path;
}

/* ---- the variable ---- */

static char** copy; /* an array of ours; those before it stay, for whoever reads them */
static size_t capacity;

/* False: the program has put another array in its place meanwhile, or there is no memory. */
static bool append_ours(char** array) {
  const size_t count = count_entries(array);
  if (copy == NULL || array != copy || count + 2 > capacity) {
    char** made = malloc((count + 2) * sizeof *made);
    if (made == NULL) {
      return false;
    }
    for (size_t i = 0; i < count; ++i) {
      made[i] = array[i];
    }
    copy = made;
    capacity = count + 2;
  }
  copy[count + 1] = NULL;
  __atomic_store_n(&copy[count], ours, __ATOMIC_RELEASE);
  return __atomic_compare_exchange_n(&environ, &array, copy, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED);
}

static void set_variable(void) {
  char** entry = find_entry(is_variable);
  replaced = entry != NULL && !is_ours(*entry) ? *entry : NULL;
  if (entry != NULL) {
    __atomic_store_n(entry, ours, __ATOMIC_RELEASE);
    return;
  }
  for (int tries = 0; tries < 8 && !append_ours(__atomic_load_n(&environ, __ATOMIC_ACQUIRE));) {
    ++tries;
  }
}

static void restore_variable(void) {
  char** array = __atomic_load_n(&environ, __ATOMIC_ACQUIRE);
  char** entry = find_entry(is_our_entry);
  if (entry == NULL) {
    return; /* the program has set another one since */
  }
  if (replaced != NULL) {
    __atomic_store_n(entry, replaced, __ATOMIC_RELEASE);
  } else if (array == copy && entry[1] == NULL) {
    __atomic_store_n(entry, NULL, __ATOMIC_RELEASE);
  } else {
    unsetenv("NCCL_TUNER_PLUGIN"); /* the program has set others since, and may be at it */
  }
}

/* ---- around calls ---- */

static bool take_place(uint32_t from) {
  return __atomic_compare_exchange_n(&place, &from, changing, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED);
}

/* For good: NCCL looks for a plugin once for all communicators. Where it has ours already this
 * comes too late. */
static void exclude(void) {
  __atomic_store_n(&excluded, true, __ATOMIC_RELEASE);
  uint32_t expected = contextune_tuner_offered;
  __atomic_compare_exchange_n(&state, &expected, (uint32_t)contextune_tuner_users_policy, false,
                              __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
  contextune_tuner_taken();
}

void contextune_tuner_offer(const struct contextune_nccl_call* call) {
  enum { oldest_that_knows_us = 22200 };
  __atomic_add_fetch(&offers, 1, __ATOMIC_ACQ_REL);
  if (contextune_load_core() == NULL || contextune_is_switched_off()) {
    return;
  }
  if (contextune_nccl_excludes_tuner(call->config)) {
    exclude();
  }
  const int version = contextune_nccl_version(call->library);
  if ((version != 0 && version < oldest_that_knows_us) || !take_place(withdrawn)) {
    return; /* another thread may be at it: then its communicator brings NCCL to us */
  }
  if (!prepared) {
    __atomic_store_n(&state, (uint32_t)prepare(), __ATOMIC_RELEASE);
    __atomic_store_n(&prepared, true, __ATOMIC_RELEASE);
  }
  if (contextune_tuner_state() != contextune_tuner_offered) {
    __atomic_store_n(&place, withdrawn, __ATOMIC_RELEASE);
    return;
  }
  set_variable();
  __atomic_store_n(&place, offered, __ATOMIC_RELEASE);
}

void contextune_tuner_offer_ends(void) {
  __atomic_sub_fetch(&offers, 1, __ATOMIC_ACQ_REL);
}

void contextune_tuner_taken(void) {
  if (take_place(offered)) {
    restore_variable();
    __atomic_store_n(&place, withdrawn, __ATOMIC_RELEASE);
  }
}

void contextune_tuner_withdraw(void) {
  if (__atomic_load_n(&offers, __ATOMIC_ACQUIRE) == 0) {
    contextune_tuner_taken();
  }
}
