#pragma once

#include <contextune/contextune.h>

namespace contextune::api {

/// What the C functions on regions do in the copy that runs. Nothing throws; what fails leaves its
/// text in last_error().
void begin_region(contextune_entry* entry, const char* name) noexcept;
[[nodiscard]] int region_tunes(const contextune_entry* entry) noexcept;
[[nodiscard]] int set_region_option(contextune_entry* entry, const char* name,
                                    const char* value) noexcept;
[[nodiscard]] int add_restore_buffer(contextune_entry* entry, void* pointer,
                                     size_t size_bytes) noexcept;
[[nodiscard]] int set_restore_call(contextune_entry* entry, int (*restore)(void* user),
                                   void* user) noexcept;
[[nodiscard]] int next_pass(contextune_entry* entry) noexcept;
void end_region(contextune_entry* entry) noexcept;

}  // namespace contextune::api
