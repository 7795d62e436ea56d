#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>
#include <vector>

#include <contextune/contextune.h>

#include "core/trials/store.hpp"

namespace contextune::api {

/// The work of the C functions on regions in the copy that runs. Nothing throws; a failure leaves
/// its text in last_error().
void begin_region(contextune_entry* entry, const char* name) noexcept;
/// Begins a region in which a problem of a choice is tuned by itself.
/// @param refused gets true if there can be no such region; it lives until the entry ends
void begin_region_as(contextune_entry* entry, std::string_view name, const StoredAs& as,
                     std::atomic<bool>& refused) noexcept;
/// Begins the region of one problem of a function. Each problem has a region of its own, instead of
/// being one more site of the function's. A site that comes to a finished search has to be launched
/// in two passes before it starts a generation. It would also share limits of passes, time and
/// sites, and an end of the search, with the problems before it. In a region of its own, a new
/// problem is tuned from its first call to its winner.
void begin_region_of(contextune_entry* entry, contextune_tunable* tunable, uint32_t key) noexcept;
[[nodiscard]] int region_tunes(const contextune_entry* entry) noexcept;
[[nodiscard]] int set_region_option(contextune_entry* entry, const char* name,
                                    const char* value) noexcept;
[[nodiscard]] int add_restore_buffer(contextune_entry* entry, void* pointer,
                                     size_t size_bytes) noexcept;
[[nodiscard]] int set_restore_call(contextune_entry* entry, int (*restore)(void* user),
                                   void* user) noexcept;
[[nodiscard]] int set_region_communicator(contextune_entry* entry, void* communicator) noexcept;
[[nodiscard]] int set_region_group(contextune_entry* entry, const char* ranks) noexcept;
[[nodiscard]] int region_untuned(const contextune_entry* entry) noexcept;
/// All passes of it wait for these ranks of the job; empty: for all of the job. As an option.
void make_passes_together(contextune_entry* entry, std::vector<std::uint32_t> ranks) noexcept;
/// Where the body is repeated, it is a row of calls of one tunable, which is timed as a whole. As
/// an option.
void time_rows(contextune_entry* entry) noexcept;
[[nodiscard]] int next_pass(contextune_entry* entry) noexcept;
void end_region(contextune_entry* entry) noexcept;

}  // namespace contextune::api
