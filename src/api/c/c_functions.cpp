// The C functions: each goes to the copy of this library that runs in the process. Objects that
// last longer than a call remember which one it was.
#include <contextune/contextune.h>
#include <contextune/version.hpp>

#include "api/api_table.h"
#include "api/choice/choice_registry.hpp"
#include "api/communicator_group.hpp"
#include "api/declared_kernel.hpp"
#include "api/failure_text.hpp"
#include "api/join.hpp"
#include "api/last_error.hpp"
#include "api/limits.hpp"
#include "api/own_rank.hpp"
#include "api/process.hpp"
#include "api/region/entry.hpp"
#include "api/region/region_report.hpp"
#include "api/tunable/tunable_registry.hpp"

namespace contextune::api {
namespace {

int is_attached() noexcept {
  const intercept::Runtime* now = intercept::Runtime::get();
  return now != nullptr && now->sees_launches() ? 1 : 0;
}

constexpr contextune_api table{
    .version = CONTEXTUNE_API_VERSION,
    .size = sizeof(contextune_api),
    .attached = &is_attached,
    .error = &last_error,
    .current_state = &current_state,
    .state_reason = &state_reason,
    .region_begin = &begin_region,
    .region_tunes = &region_tunes,
    .region_option = &set_region_option,
    .region_restore_buffer = &add_restore_buffer,
    .region_restore_call = &set_restore_call,
    .region_next = &next_pass,
    .region_end = &end_region,
    // Which program file wants it is known to the other copy only.
    .tunable_create = [](const char* name, const char* const* configs, size_t num_configs)
        -> contextune_tunable* { return create_tunable(name, configs, num_configs, nullptr); },
    .tunable_passes = &set_tunable_passes,
    .tunable_key = &tunable_key,
    .tunable_begin = &begin_call,
    .tunable_end = &end_call,
    .declare_kernel = &declare_kernel,
    .join = &join,
    .tunable_keep = &keep_configs,
    .tunable_settled = &settled_config,
    .tunable_region_begin = &begin_region_of,
    .current_place = &current_place,
    .tunable_span = &time_tunable_as_span,
    .choice_runs_default = &say_runs_default,
    .communicator_ranks = &communicator_ranks,
    .region_communicator = &set_region_communicator,
    .region_untuned = &region_untuned,
    .note_failure = &note_failure,
    .rank = &own_rank,
    .tunable_version = &set_tunable_version,
    .region_query = &query_region,
    .tunable_timings = &tunable_timings,
    .region_group = &set_region_group,
    .tunable_group_key = &tunable_group_key,
    .note_capture = &note_capture,
};

/// The table of an entry or call that was begun. An all-zero entry or call goes to this copy, which
/// passes it through.
const contextune_api& api_of(std::uint64_t word) noexcept {
  return word == 0 ? table : *reinterpret_cast<const contextune_api*>(word);
}

/// Keeps the failure text of another copy in this one, too.
int forwarded(const contextune_api& api, int status) noexcept {
  if (status != 0 && &api != &table) fail(api.error());
  return status;
}

/// The table of the copy that runs, which has the entry from now on.
const contextune_api& begin_entry(contextune_entry* entry) noexcept {
  const contextune_api* api = active_api();
  if (api != own_api() && has_pending_declarations()) hand_over_declarations(*api);
  entry->opaque[0] = reinterpret_cast<std::uint64_t>(api);
  return *api;
}

}  // namespace

const contextune_api* own_api() noexcept {
  return &table;
}

}  // namespace contextune::api

using namespace contextune::api;

extern "C" {

const contextune_api* contextune_api_v1(void) {
  return own_api();
}

const char* contextune_version(void) {
  return CONTEXTUNE_VERSION;
}
const char* contextune_error(void) {
  return last_error();
}
enum contextune_state contextune_current_state(void) {
  return active_api()->current_state();
}
const char* contextune_state_reason(void) {
  return active_api()->state_reason();
}

void contextune_region_begin(contextune_entry* entry, const char* name) {
  begin_entry(entry).region_begin(entry, name);
}

int contextune_region_tunes(const contextune_entry* entry) {
  return api_of(entry->opaque[0]).region_tunes(entry);
}

int contextune_region_option(contextune_entry* entry, const char* name, const char* value) {
  const contextune_api& api = api_of(entry->opaque[0]);
  return forwarded(api, api.region_option(entry, name, value));
}

int contextune_region_restore_buffer(contextune_entry* entry, void* device_pointer,
                                     size_t size_bytes) {
  const contextune_api& api = api_of(entry->opaque[0]);
  return forwarded(api, api.region_restore_buffer(entry, device_pointer, size_bytes));
}

int contextune_region_restore_call(contextune_entry* entry, int (*restore)(void* user),
                                   void* user) {
  const contextune_api& api = api_of(entry->opaque[0]);
  return forwarded(api, api.region_restore_call(entry, restore, user));
}

int contextune_region_communicator(contextune_entry* entry, void* communicator) {
  const contextune_api& api = api_of(entry->opaque[0]);
  return forwarded(api, api.region_communicator(entry, communicator));
}

int contextune_region_group(contextune_entry* entry, const char* ranks) {
  const contextune_api& api = api_of(entry->opaque[0]);
  return forwarded(api, api.region_group(entry, ranks));
}

int contextune_region_untuned(const contextune_entry* entry) {
  const contextune_api& api = api_of(entry->opaque[0]);
  return forwarded(api, api.region_untuned(entry));
}

int contextune_region_next(contextune_entry* entry) {
  return api_of(entry->opaque[0]).region_next(entry);
}

void contextune_region_end(contextune_entry* entry) {
  api_of(entry->opaque[0]).region_end(entry);
}

contextune_tunable* contextune_tunable_create(const char* name, const char* const* configs,
                                              size_t num_configs) {
  return create_tunable(name, configs, num_configs, __builtin_return_address(0));
}

int contextune_tunable_passes(contextune_tunable* tunable, int n_warmup, int n_repeat) {
  return set_tunable_passes(tunable, n_warmup, n_repeat);
}

int contextune_tunable_version(contextune_tunable* tunable, const char* version) {
  return set_tunable_version(tunable, version);
}

int contextune_tunable_span(contextune_tunable* tunable) {
  return time_tunable_as_span(tunable);
}

uint32_t contextune_tunable_key(contextune_tunable* tunable, const char* key) {
  return tunable_key(tunable, key);
}

uint32_t contextune_tunable_group_key(contextune_tunable* tunable, const char* key,
                                      const char* ranks) {
  return tunable_group_key(tunable, key, ranks);
}

uint32_t contextune_tunable_begin(contextune_tunable* tunable, uint32_t key,
                                  contextune_call* call) {
  const contextune_api* api = active_api();
  if (api != own_api()) return begin_call_in(*api, tunable, key, call);
  call->opaque[0] = reinterpret_cast<std::uint64_t>(api);
  return begin_call(tunable, key, call);
}

void contextune_note_failure(const char* text) {
  active_api()->note_failure(text);
}

int contextune_tunable_end(contextune_call* call, int launched) {
  return api_of(call->opaque[0]).tunable_end(call, launched);
}

int contextune_tunable_keep(contextune_tunable* tunable, uint32_t key, const uint32_t* configs,
                            size_t num_configs, const contextune_pruned* pruned) {
  return keep_configs(tunable, key, configs, num_configs, pruned);
}

uint32_t contextune_tunable_settled(contextune_tunable* tunable, uint32_t key) {
  const contextune_api* api = active_api();
  return api == own_api() ? settled_config(tunable, key) : settled_config_in(*api, tunable, key);
}

size_t contextune_tunable_timings(contextune_tunable* tunable, uint32_t key,
                                  contextune_timing* timings, size_t most) {
  const contextune_api* api = active_api();
  return api == own_api() ? tunable_timings(tunable, key, timings, most)
                          : tunable_timings_in(*api, tunable, key, timings, most);
}

void contextune_tunable_region_begin(contextune_entry* entry, contextune_tunable* tunable,
                                     uint32_t key) {
  const contextune_api& api = begin_entry(entry);
  if (&api == own_api()) {
    begin_region_of(entry, tunable, key);
  } else {
    begin_region_in(api, entry, tunable, key);
  }
}

enum contextune_place contextune_current_place(void) {
  return active_api()->current_place();
}

void contextune_note_capture(void* stream) {
  active_api()->note_capture(stream);
}

int contextune_region_query(const char* name, contextune_region_report* report) {
  const contextune_api* api = active_api();
  return forwarded(*api, api->region_query(name, report));
}

int contextune_declare_kernel(const contextune_kernel* kernel) {
  const contextune_api* api = active_api();
  return forwarded(*api, api->declare_kernel(kernel));
}

int contextune_join(void* communicator, double seconds) {
  const contextune_api* api = active_api();
  return forwarded(*api, api->join(communicator, seconds));
}

void contextune_rank(uint32_t* rank, uint32_t* num_ranks) {
  active_api()->rank(rank, num_ranks);
}

int contextune_communicator_ranks(void* communicator, char* text, size_t size) {
  const contextune_api* api = active_api();
  return forwarded(*api, api->communicator_ranks(communicator, text, size));
}

}  // extern "C"
