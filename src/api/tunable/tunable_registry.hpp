#pragma once

#include "api/api_table.h"

namespace contextune::api {

/// The work of the C functions on tunables in this copy, or in `other` where that is the copy that
/// runs. Nothing throws; a failure leaves its text in last_error().
/// @param caller code of the program file that has it; null: not known
[[nodiscard]] contextune_tunable* create_tunable(const char* name, const char* const* configs,
                                                 size_t num_configs, const void* caller) noexcept;
[[nodiscard]] int set_tunable_passes(contextune_tunable* tunable, int n_warmup,
                                     int n_repeat) noexcept;
[[nodiscard]] int set_tunable_version(contextune_tunable* tunable, const char* version) noexcept;
[[nodiscard]] int time_tunable_as_span(contextune_tunable* tunable) noexcept;
[[nodiscard]] uint32_t tunable_key(contextune_tunable* tunable, const char* key) noexcept;
[[nodiscard]] uint32_t tunable_group_key(contextune_tunable* tunable, const char* key,
                                         const char* ranks) noexcept;
[[nodiscard]] uint32_t begin_call(contextune_tunable* tunable, uint32_t key,
                                  contextune_call* call) noexcept;
[[nodiscard]] int end_call(contextune_call* call, int launched) noexcept;

/// end_call() of it does nothing.
void close_call(contextune_call* call) noexcept;
[[nodiscard]] uint32_t settled_config(contextune_tunable* tunable, uint32_t key) noexcept;
[[nodiscard]] int keep_configs(contextune_tunable* tunable, uint32_t key, const uint32_t* configs,
                               size_t num_configs, const contextune_pruned* pruned) noexcept;

[[nodiscard]] size_t tunable_timings(contextune_tunable* tunable, uint32_t key,
                                     contextune_timing* timings, size_t most) noexcept;

// The same for the same tunable and problem in another copy.
[[nodiscard]] uint32_t begin_call_in(const contextune_api& other, contextune_tunable* tunable,
                                     uint32_t key, contextune_call* call) noexcept;
[[nodiscard]] uint32_t settled_config_in(const contextune_api& other, contextune_tunable* tunable,
                                         uint32_t key) noexcept;
[[nodiscard]] size_t tunable_timings_in(const contextune_api& other, contextune_tunable* tunable,
                                        uint32_t key, contextune_timing* timings,
                                        size_t most) noexcept;
void begin_region_in(const contextune_api& other, contextune_entry* entry,
                     contextune_tunable* tunable, uint32_t key) noexcept;

}  // namespace contextune::api
