#pragma once

#include "device.hpp"

/// Programs that are right, and awkward for whoever records a region of them and repeats it. Each
/// prints what it computes and answers how it ends: both must be the same whatever watches it.
namespace awkward {

// Work that waits for what the host does after the region.
int value_of_the_host(Device& device);
int function_of_the_host(Device& device);
int allocations_while_the_gpu_waits(Device& device);
int large_allocation_while_the_gpu_works(Device& device);
int end_while_the_gpu_is_at_work(Device& device);

// Other threads.
int allocation_while_prepared(Device& device);
int memory_freed_while_prepared(Device& device);
int allocation_while_recorded(Device& device);
int two_threads_in_a_region(Device& device);
int other_region_while_repeated(Device& device);
int upload_while_repeated(Device& device);
int upload_from_within_the_region(Device& device);
int upload_from_before_the_region(Device& device);
int threads_end_in_regions(Device& device);

/// Before the driver is there: what is registered at exit later runs earlier.
void watch_end_of_driver();

// Signals, and ends of the process, while a region is repeated.
int handler_reads_memory(Device& device);
int handler_of_the_process_reads_memory(Device& device);
int handler_of_a_timer(Device& device);
int ignored_signals(Device& device);
int handler_exits(Device& device);
int handler_exits_within_malloc(Device& device);
int handler_exits_and_joins(Device& device);
int other_thread_exits(Device& device);
int other_thread_ends_the_driver(Device& device);
int other_thread_ends_cupti(Device& device);
int other_thread_exits_while_cupti_begins(Device& device);
int other_thread_exits_while_cupti_begins_live(Device& device);
int main_returns_while_cupti_begins(Device& device);
int driver_ends_in_the_region(Device& device);
int driver_ends_while_repeated(Device& device);
int thread_cancelled(Device& device);
int fork_while_repeated(Device& device);

// Things that come and go inside the region.
int memory_freed(Device& device);
int module_unloaded(Device& device);
int stream_destroyed(Device& device);
int event_destroyed(Device& device);
int texture_destroyed(Device& device);
int primary_context_reset(Device& device);
int primary_context_in_pairs(Device& device);
int primary_context_released(Device& device);
int second_context_destroyed(Device& device);

// How much there is.
int memory_over_visits(Device& device);
int memory_almost_full(Device& device);
int many_copies(Device& device);
int much_memory_of_the_host(Device& device);
int nested_regions(Device& device);
int no_thread_left_while_repeated(Device& device);

// Calls of which nobody knows.
int memory_that_was_not_seen(Device& device);
int memory_given_back_unseen(Device& device);

// How the processor calculates.
int arithmetic_that_traps(Device& device);
int flags_of_arithmetic(Device& device);
int arithmetic_that_rounds_up(Device& device);

}  // namespace awkward
