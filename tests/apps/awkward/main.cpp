#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "scenarios.hpp"

namespace {

struct Scenario {
  const char* name;
  int (*run)(awkward::Device& device);
};

constexpr Scenario scenarios[] = {
#define SCENARIO(name) \
  { #name, &awkward::name }
    SCENARIO(value_of_the_host),
    SCENARIO(function_of_the_host),
    SCENARIO(allocations_while_the_gpu_waits),
    SCENARIO(large_allocation_while_the_gpu_works),
    SCENARIO(end_while_the_gpu_is_at_work),
    SCENARIO(allocation_while_prepared),
    SCENARIO(memory_freed_while_prepared),
    SCENARIO(allocation_while_recorded),
    SCENARIO(two_threads_in_a_region),
    SCENARIO(other_region_while_repeated),
    SCENARIO(upload_while_repeated),
    SCENARIO(upload_from_within_the_region),
    SCENARIO(upload_from_before_the_region),
    SCENARIO(threads_end_in_regions),
    SCENARIO(handler_reads_memory),
    SCENARIO(handler_of_the_process_reads_memory),
    SCENARIO(handler_of_a_timer),
    SCENARIO(ignored_signals),
    SCENARIO(handler_exits),
    SCENARIO(handler_exits_within_malloc),
    SCENARIO(handler_exits_and_joins),
    SCENARIO(other_thread_exits),
    SCENARIO(other_thread_ends_the_driver),
    SCENARIO(other_thread_ends_cupti),
    SCENARIO(other_thread_exits_while_cupti_begins),
    SCENARIO(other_thread_exits_while_cupti_begins_live),
    SCENARIO(main_returns_while_cupti_begins),
    SCENARIO(driver_ends_in_the_region),
    SCENARIO(driver_ends_while_repeated),
    SCENARIO(thread_cancelled),
    SCENARIO(fork_while_repeated),
    SCENARIO(memory_freed),
    SCENARIO(module_unloaded),
    SCENARIO(stream_destroyed),
    SCENARIO(event_destroyed),
    SCENARIO(texture_destroyed),
    SCENARIO(primary_context_reset),
    SCENARIO(primary_context_in_pairs),
    SCENARIO(primary_context_released),
    SCENARIO(second_context_destroyed),
    SCENARIO(memory_over_visits),
    SCENARIO(memory_almost_full),
    SCENARIO(many_copies),
    SCENARIO(much_memory_of_the_host),
    SCENARIO(nested_regions),
    SCENARIO(no_thread_left_while_repeated),
    SCENARIO(memory_that_was_not_seen),
    SCENARIO(memory_given_back_unseen),
    SCENARIO(arithmetic_that_traps),
    SCENARIO(flags_of_arithmetic),
    SCENARIO(arithmetic_that_rounds_up),
#undef SCENARIO
};

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--list") == 0) {
    for (const Scenario& one : scenarios) std::puts(one.name);
    return 0;
  }
  const auto* const chosen = std::find_if(
      std::begin(scenarios), std::end(scenarios),
      [&](const Scenario& one) { return argc == 2 && std::strcmp(argv[1], one.name) == 0; });
  if (chosen == std::end(scenarios)) {
    std::fputs("usage: awkward_programs --list|SCENARIO\n", stderr);
    return 2;
  }
  // Of a process that forks or ends early nothing is printed twice, or not at all.
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  awkward::watch_end_of_driver();
  awkward::Device device = awkward::Device::open();
  const int status = chosen->run(device);
  std::puts("through");
  return status;
}
