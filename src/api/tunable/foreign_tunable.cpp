// The same tunables in another copy of the library, where that is the one that runs.
#include <new>
#include <vector>

#include "api/last_error.hpp"
#include "api/process.hpp"
#include "api/tunable/tunable_record.hpp"
#include "api/tunable/tunable_registry.hpp"

namespace contextune::api {
namespace {

uint32_t default_config(const contextune_tunable* tunable, uint32_t key) noexcept {
  const TunableProblem* problem = tunable != nullptr ? tunable->problem(key) : nullptr;
  return problem == nullptr ? 0 : problem->outer(0);
}

/// The same tunable and problem in another copy; null: there is no memory.
contextune_tunable* there_of(const contextune_api& other, contextune_tunable* tunable, uint32_t key,
                             std::uint32_t& number) noexcept {
  if (tunable == nullptr) return nullptr;
  TunableProblem* problem = tunable->problem(key);
  contextune_tunable* there = tunable->foreign.load(std::memory_order_acquire);
  if (there == nullptr) {
    try {
      std::vector<const char*> texts;
      for (const std::string& text : tunable->config_texts) texts.push_back(text.c_str());
      there = other.tunable_create(tunable->name.c_str(), texts.data(), texts.size());
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
    tunable->foreign.store(there, std::memory_order_release);
  }
  if (there == nullptr || problem == nullptr) return nullptr;
  if (tunable->timed_as_span.load(std::memory_order_relaxed))
    static_cast<void>(other.tunable_span(there));
  try {
    if (const std::string version = tunable->version(); !version.empty())
      static_cast<void>(other.tunable_version(there, version.c_str()));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  std::uint32_t known = problem->foreign.load(std::memory_order_acquire);
  if (known == 0) {
    known = other.tunable_group_key(there, problem->text.c_str(), problem->group.c_str()) + 1;
    if (const KeptConfigs* kept = problem->kept.load(std::memory_order_acquire)) {
      const contextune_pruned pruned{kept->pruned.by_device, kept->pruned.by_kernel,
                                     kept->pruned.by_author, kept->pruned.failed};
      static_cast<void>(other.tunable_keep(there, known - 1, kept->configs.data(),
                                           kept->configs.size(), &pruned));
    }
    problem->foreign.store(known, std::memory_order_release);
  }
  number = known - 1;
  return there;
}

}  // namespace

uint32_t begin_call_in(const contextune_api& other, contextune_tunable* tunable, uint32_t key,
                       contextune_call* call) noexcept {
  call->opaque[0] = reinterpret_cast<std::uint64_t>(own_api());
  close_call(call);
  std::uint32_t number = 0;
  contextune_tunable* there = there_of(other, tunable, key, number);
  if (there == nullptr) return default_config(tunable, key);
  call->opaque[0] = reinterpret_cast<std::uint64_t>(&other);
  return other.tunable_begin(there, number, call);
}

uint32_t settled_config_in(const contextune_api& other, contextune_tunable* tunable,
                           uint32_t key) noexcept {
  std::uint32_t number = 0;
  contextune_tunable* there = there_of(other, tunable, key, number);
  return there == nullptr ? default_config(tunable, key) : other.tunable_settled(there, number);
}

size_t tunable_timings_in(const contextune_api& other, contextune_tunable* tunable, uint32_t key,
                          contextune_timing* timings, size_t most) noexcept {
  std::uint32_t number = 0;
  contextune_tunable* there = there_of(other, tunable, key, number);
  const std::size_t count =
      there == nullptr ? 0 : other.tunable_timings(there, number, timings, most);
  if (count == 0)
    static_cast<void>(fail(there == nullptr ? "the tunable has no such problem" : other.error()));
  return count;
}

void begin_region_in(const contextune_api& other, contextune_entry* entry,
                     contextune_tunable* tunable, uint32_t key) noexcept {
  std::uint32_t number = 0;
  contextune_tunable* there = there_of(other, tunable, key, number);
  other.tunable_region_begin(entry, there, number);
}

}  // namespace contextune::api
