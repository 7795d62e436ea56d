/* What one copy of libcontextune.so offers to another copy in the same process. Only the copy that
 * the frontend attached sees launches; the others forward to it. */
#pragma once

#include <contextune/contextune.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CONTEXTUNE_API_VERSION 1u

/* `version` must be equal; `size` may grow at the end. */
struct contextune_api {
  uint32_t version;
  uint32_t size;
  int (*attached)(void); /* 1: the frontend started this copy */
  const char* (*error)(void);
  enum contextune_state (*current_state)(void);
  const char* (*state_reason)(void);
  void (*region_begin)(contextune_entry* entry, const char* name);
  int (*region_tunes)(const contextune_entry* entry);
  int (*region_option)(contextune_entry* entry, const char* name, const char* value);
  int (*region_restore_buffer)(contextune_entry* entry, void* pointer, size_t size_bytes);
  int (*region_restore_call)(contextune_entry* entry, int (*restore)(void* user), void* user);
  int (*region_next)(contextune_entry* entry);
  void (*region_end)(contextune_entry* entry);
  contextune_tunable* (*tunable_create)(const char* name, const char* const* configs,
                                        size_t num_configs);
  int (*tunable_passes)(contextune_tunable* tunable, int n_warmup, int n_repeat);
  uint32_t (*tunable_key)(contextune_tunable* tunable, const char* key);
  uint32_t (*tunable_begin)(contextune_tunable* tunable, uint32_t key, contextune_call* call);
  int (*tunable_end)(contextune_call* call, int launched);
  int (*declare_kernel)(const contextune_kernel* kernel);
  int (*join)(void* communicator, double seconds);
  int (*tunable_keep)(contextune_tunable* tunable, uint32_t key, const uint32_t* configs,
                      size_t num_configs, const contextune_pruned* pruned);
  uint32_t (*tunable_settled)(contextune_tunable* tunable, uint32_t key);
  void (*tunable_region_begin)(contextune_entry* entry, contextune_tunable* tunable, uint32_t key);
  enum contextune_place (*current_place)(void);
  int (*tunable_span)(contextune_tunable* tunable);
  /* Says in the log that a choice of the copy whose file that is runs its default. */
  void (*choice_runs_default)(const char* name, const char* file);
  int (*communicator_ranks)(void* communicator, char* text, size_t size);
  int (*region_communicator)(contextune_entry* entry, void* communicator);
  int (*region_untuned)(const contextune_entry* entry);
  void (*note_failure)(const char* text);
  void (*rank)(uint32_t* rank, uint32_t* num_ranks);
  int (*tunable_version)(contextune_tunable* tunable, const char* version);
  int (*region_query)(const char* name, contextune_region_report* report);
  size_t (*tunable_timings)(contextune_tunable* tunable, uint32_t key, contextune_timing* timings,
                            size_t most);
  int (*region_group)(contextune_entry* entry, const char* ranks);
  uint32_t (*tunable_group_key)(contextune_tunable* tunable, const char* key, const char* ranks);
  void (*note_capture)(void* stream);
};

/* Exported; never NULL. */
CONTEXTUNE_EXPORT const struct contextune_api* contextune_api_v1(void);

#ifdef __cplusplus
}
#endif
