#include "api/tunable/tunable_registry.hpp"

#include <algorithm>
#include <exception>
#include <map>
#include <new>

#include "api/declared_rule.hpp"
#include "api/failure_text.hpp"
#include "api/last_error.hpp"
#include "api/process.hpp"
#include "api/tunable/code_version.hpp"
#include "api/tunable/tunable_record.hpp"
#include "core/agreement/rank_list.hpp"
#include "gpu/image/program_file.hpp"
#include "intercept/site/site.hpp"

namespace contextune::api {
namespace {

using intercept::Region;
using intercept::TunableCall;

/// The contents of a contextune_call after word 0, which is the table.
struct Call {
  alignas(TunableCall) unsigned char storage[sizeof(TunableCall)];
  std::uint32_t open;

  TunableCall& call() noexcept { return *std::launder(reinterpret_cast<TunableCall*>(storage)); }
};
static_assert(sizeof(Call) <= sizeof(contextune_call) - sizeof(std::uint64_t));
static_assert(alignof(Call) <= alignof(contextune_call));

Call& of(contextune_call* call) noexcept {
  return *reinterpret_cast<Call*>(&call->opaque[1]);
}

/// All tunables, by name and configs. Never destroyed.
struct Registry {
  std::mutex mutex;
  std::map<std::string, std::map<std::vector<std::string>, contextune_tunable*>> tunables;
};

Registry& registry() {
  static auto* const kept = new Registry;
  return *kept;
}

std::optional<int> at_least(int least, int value) {
  return value < least ? std::nullopt : std::optional(value);
}

/// The tunable's site in a region that it was not called in yet.
ProblemSite* add_site(contextune_tunable& tunable, TunableProblem& problem, Region& region,
                      int device) {
  intercept::TunableSpec spec;
  spec.name = tunable.site_name;
  spec.key = problem.key;
  // As kernels: each device is another problem. Where there is but one, the key stays short.
  if (device > 0) spec.key.add("device", device);
  if (const KeptConfigs* kept = problem.kept.load(std::memory_order_acquire)) {
    for (const std::uint32_t config : kept->configs)
      spec.configs.push_back(tunable.configs[config]);
    spec.pruned = kept->pruned;
  } else {
    spec.configs = tunable.configs;
  }
  spec.n_warmup = at_least(0, tunable.n_warmup.load(std::memory_order_relaxed));
  spec.n_repeat = at_least(1, tunable.n_repeat.load(std::memory_order_relaxed));
  spec.timed_as_span = tunable.timed_as_span.load(std::memory_order_relaxed);
  spec.declaration = declaration_of(tunable.version());
  if (spec.declaration.empty()) spec.build = tunable.build;
  return problem.sites.add(region, device, region.tunable(spec));
}

/// A problem with one config becomes no site, so nobody else says what became of the others.
void say_no_choice(const contextune_tunable& tunable, const TunableProblem& problem,
                   const KeptConfigs& kept) noexcept {
  intercept::Runtime* now = intercept::Runtime::get();
  if (now == nullptr || kept.configs.size() != 1 || kept.pruned.all() == 0) return;
  try {
    const auto count = [](std::uint32_t number, const char* by) {
      return number == 0 ? std::string() : " " + std::to_string(number) + " " + by;
    };
    now->log().fallback(FallbackReason::NoKnobs, tunable.region_name(problem), {},
                        "The tunable has one of " + std::to_string(tunable.configs.size()) +
                            " configs left: nothing to tune (ruled out:" +
                            count(kept.pruned.by_device, "by the device") +
                            count(kept.pruned.by_kernel, "by the kernel") +
                            count(kept.pruned.by_author, "by the author") +
                            count(kept.pruned.failed, "could not be launched") + ").");
  } catch (const std::exception&) {
    // No memory to say it.
  }
}

}  // namespace

contextune_tunable* create_tunable(const char* name, const char* const* configs, size_t num_configs,
                                   const void* caller) noexcept {
  try {
    if (name == nullptr || *name == '\0') {
      fail("a tunable is created without a name; give it one");
      return nullptr;
    }
    std::vector<Config> read =
        read_configs("tunable '" + std::string(name) + "'", configs, num_configs);
    std::vector<std::string> texts(configs, configs + num_configs);
    Registry& kept = registry();
    const std::lock_guard lock(kept.mutex);
    auto& same_name = kept.tunables[name];
    if (const auto found = same_name.find(texts); found != same_name.end()) return found->second;
    auto tunable = std::make_unique<contextune_tunable>();
    tunable->name = name;
    tunable->site_name = name;
    if (!same_name.empty()) tunable->site_name += "#" + std::to_string(same_name.size() + 1);
    tunable->config_texts = texts;
    tunable->configs = std::move(read);
    if (auto file = gpu::program_file_of(caller, 1)) tunable->build = std::move(file->build);
    static_cast<void>(tunable->number_of(""));  // problem 0
    return same_name.emplace(std::move(texts), tunable.release()).first->second;
  } catch (const std::exception& error) {
    fail(error.what());
    return nullptr;
  }
}

int set_tunable_passes(contextune_tunable* tunable, int n_warmup, int n_repeat) noexcept {
  if (tunable == nullptr || n_warmup < -1 || n_repeat < -1 || n_repeat == 0) {
    return fail(
        "passes of a tunable: n_warmup must be at least 0 and n_repeat at least 1, or -1 for "
        "those of the region");
  }
  tunable->n_warmup.store(n_warmup, std::memory_order_relaxed);
  tunable->n_repeat.store(n_repeat, std::memory_order_relaxed);
  return 0;
}

int set_tunable_version(contextune_tunable* tunable, const char* version) noexcept {
  if (tunable == nullptr) return fail("a version is given of a tunable that does not exist");
  try {
    tunable->set_version(version == nullptr ? "" : version);
    return 0;
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}

int time_tunable_as_span(contextune_tunable* tunable) noexcept {
  if (tunable == nullptr) return fail("there is no tunable to be timed as a span");
  tunable->timed_as_span.store(true, std::memory_order_relaxed);
  return 0;
}

uint32_t tunable_key(contextune_tunable* tunable, const char* key) noexcept {
  return tunable_group_key(tunable, key, nullptr);
}

uint32_t tunable_group_key(contextune_tunable* tunable, const char* key,
                           const char* ranks) noexcept {
  static_assert(contextune_tunable::Problems::none == CONTEXTUNE_UNTUNED);
  if (tunable == nullptr) {
    fail("a key is named of a tunable that does not exist");
    return CONTEXTUNE_UNTUNED;
  }
  try {
    // However it is written, it is one group.
    const std::string group =
        ranks == nullptr ? std::string() : text_of_ranks(ranks_of_text(ranks));
    const std::uint32_t number = tunable->number_of(key == nullptr ? "" : key, group);
    if (number == CONTEXTUNE_UNTUNED) {
      fail("tunable '" + tunable->name + "' has " +
           std::to_string(contextune_tunable::Problems::most) +
           " keys already; give it a coarser key");
    }
    return number;
  } catch (const std::exception& error) {
    fail(error.what());
    return CONTEXTUNE_UNTUNED;
  }
}

uint32_t begin_call(contextune_tunable* tunable, uint32_t key, contextune_call* call) noexcept {
  Call& mine = *new (&call->opaque[1]) Call;
  mine.open = 0;
  TunableProblem* problem = tunable != nullptr ? tunable->problem(key) : nullptr;
  if (problem == nullptr) return 0;
  intercept::Runtime* now = runtime();
  if (now == nullptr) return problem->outer(0);
  const int device = current_device();
  Region* region = now->current_region();
  // The region of the whole process is where calls outside of regions end up.
  const bool outside = region == nullptr || region->name() == "process";
  ProblemSite* site = outside ? problem->sites.find_settled(device) : nullptr;
  if (site == nullptr && region != nullptr) {
    site = problem->sites.find(region, device);
    try {
      if (site == nullptr) site = add_site(*tunable, *problem, *region, device);
    } catch (const std::exception& error) {
      now->log().fault(error.what());
    }
  }
  if (site == nullptr || site->site == nullptr) return problem->outer(0);
  new (mine.storage) TunableCall(site->site);
  mine.open = 1;
  const std::uint32_t config = problem->outer(mine.call().config());
  return config < tunable->configs.size() ? config : problem->outer(0);
}

void close_call(contextune_call* call) noexcept {
  new (&call->opaque[1]) Call{};
}

int end_call(contextune_call* call, int launched) noexcept {
  Call& mine = of(call);
  if (mine.open == 0) return 0;
  mine.open = 0;
  const std::string_view why = take_failure();
  const bool again = mine.call().end(launched != 0, launched != 0 ? std::string_view() : why);
  mine.call().~TunableCall();
  return again ? 1 : 0;
}

uint32_t settled_config(contextune_tunable* tunable, uint32_t key) noexcept {
  TunableProblem* problem = tunable != nullptr ? tunable->problem(key) : nullptr;
  if (problem == nullptr) return 0;
  intercept::Runtime* now = runtime();
  if (now == nullptr) return problem->outer(0);
  if (now->is_in_region()) return CONTEXTUNE_UNSETTLED;
  if (const ProblemSite* site = problem->sites.find_settled(current_device())) {
    return problem->outer(site->site->settled());
  }
  const bool no_choice = problem->num_configs(tunable->configs.size()) == 1 ||
                         problem->refused.load(std::memory_order_relaxed);
  return no_choice ? problem->outer(0) : CONTEXTUNE_UNSETTLED;
}

int keep_configs(contextune_tunable* tunable, uint32_t key, const uint32_t* configs,
                 size_t num_configs, const contextune_pruned* pruned) noexcept {
  TunableProblem* problem = tunable != nullptr ? tunable->problem(key) : nullptr;
  if (problem == nullptr) return fail("configs are kept for a problem that does not exist");
  try {
    auto kept = std::make_unique<KeptConfigs>();
    if (configs != nullptr) kept->configs.assign(configs, configs + num_configs);
    std::vector<bool> seen(tunable->configs.size());
    for (const std::uint32_t config : kept->configs) {
      if (config >= seen.size() || seen[config]) {
        return fail("tunable '" + tunable->name + "': config " + std::to_string(config) +
                    " is kept for '" + problem->text + "', but it " +
                    (config >= seen.size() ? "does not exist" : "was named before"));
      }
      seen[config] = true;
    }
    if (kept->configs.empty()) {
      return fail("tunable '" + tunable->name + "': no config is kept for '" + problem->text +
                  "'; keep at least one");
    }
    if (pruned != nullptr) {
      kept->pruned = {pruned->by_device, pruned->by_kernel, pruned->by_author, pruned->failed};
    }
    const KeptConfigs* before = nullptr;
    const bool fresh = problem->sites.last() == nullptr;
    if (fresh && problem->kept.compare_exchange_strong(before, kept.get())) {
      say_no_choice(*tunable, *problem, *kept);
      static_cast<void>(kept.release());  // as long as the problem
      return 0;
    }
    if (before == nullptr) before = problem->kept.load(std::memory_order_acquire);
    if (before != nullptr && before->configs == kept->configs) return 0;
    const std::string why = "tunable '" + tunable->name + "': other configs were kept for '" +
                            problem->text + "' before, or it was called already";
    if (intercept::Runtime* now = intercept::Runtime::get()) {
      now->log().fallback(FallbackReason::RuleError, tunable->name, {}, why + "; it is not tuned.");
    }
    return fail(why);
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}

}  // namespace contextune::api
