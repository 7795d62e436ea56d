#include "api/function/function_record.hpp"

#include <algorithm>

#include <contextune/error.hpp>

#include "api/last_error.hpp"
#include "api/named_values.hpp"
#include "api/process.hpp"
#include "api/tunable/tunable_registry.hpp"
#include "core/agreement/rank_list.hpp"

namespace contextune::api {
namespace {

std::uint32_t settled_of(contextune_tunable* tunable, std::uint32_t number) noexcept {
  const contextune_api* const api = active_api();
  return api == own_api() ? settled_config(tunable, number)
                          : settled_config_in(*api, tunable, number);
}

}  // namespace

bool FunctionWays::keeps(std::uint32_t config) const noexcept {
  return std::ranges::find(kept, config) != kept.end();
}

}  // namespace contextune::api

using contextune::Error;
using contextune::Key;
using contextune::SizeBucket;

std::uint32_t contextune_function::number_of(const contextune_function_key& key) {
  const std::string text = key.key == nullptr ? "" : key.key;
  const std::string named =
      key.group == nullptr ? "" : contextune::text_of_ranks(contextune::ranks_of_text(key.group));
  if (!named.empty() && key.communicator != nullptr)
    throw Error(about("a group is named, and there is a communicator; give one of the two"));
  const SizeBucket bucket = key.has_size != 0 ? buckets.bucket_of(key.of_size) : SizeBucket{0, 0};
  // No text of a key holds a line's end.
  const std::string family = text + '\n' + named + '\n' +
                             std::to_string(reinterpret_cast<std::uintptr_t>(key.communicator));
  const std::string size = key.has_size != 0 ? '\n' + std::to_string(bucket.high) : std::string();
  const std::lock_guard lock(mutex_);
  return problems_.number_of(family + size, [&](Problem& problem) {
    problem.key = contextune::api::parse_key(text);
    problem.family = family;
    problem.size.reset();
    if (key.has_size != 0) {
      problem.size = bucket.typical();
      problem.key.add("size", buckets.key_part(*problem.size));
    }
    problem.communicator = key.communicator;
    problem.group = named;
  });
}

void contextune_function::declare(const std::vector<std::string>& texts, const std::string& where) {
  if (texts.empty())
    throw Error(about("its config space is empty" + where + "; give it at least one config"));
  std::vector<const char*> given;
  for (const std::string& text : texts) given.push_back(text.c_str());
  contextune_tunable* const made =
      contextune::api::create_tunable(name.c_str(), given.data(), given.size(), caller);
  if (made == nullptr || contextune::api::time_tunable_as_span(made) != 0 ||
      contextune::api::set_tunable_version(made, version.c_str()) != 0)
    throw Error(about(contextune::api::last_error() + where));
  configs.clear();
  for (const std::string& text : texts) configs.push_back(contextune::api::parse_config(text));
  tunable.store(made, std::memory_order_release);
}

void contextune_function::number(const Problem& problem, Ways& ways,
                                 const contextune_pruned& pruned) const {
  contextune_tunable* const made = tunable.load(std::memory_order_acquire);
  Key key = problem.key;
  if (!problem.found_group.empty()) key.add("group", problem.found_group);
  // Other configs are another problem.
  if (ways.num_failed > 0) key.add("failed", std::int64_t{ways.num_failed});
  const std::uint32_t found =
      contextune::api::tunable_group_key(made, key.to_string().c_str(), problem.group.c_str());
  // Refused where there are too many, or where another function of that name keeps others; the log
  // says so, and the default runs.
  const bool known =
      contextune::api::keep_configs(made, found, ways.kept.data(), ways.kept.size(), &pruned) == 0;
  ways.number = known ? found : CONTEXTUNE_UNTUNED;
}

const contextune_function::Ways& contextune_function::publish_first(
    Problem& problem, std::unique_ptr<Ways> ways, std::string group, std::string why_untuned,
    const contextune_pruned& pruned) {
  const std::lock_guard lock(mutex_);
  if (const Ways* const known = problem.ways.load(std::memory_order_relaxed)) return *known;
  problem.found_group = std::move(group);
  problem.why_untuned = std::move(why_untuned);
  if (!ways->kept.empty() && problem.why_untuned.empty()) number(problem, *ways, pruned);
  problem.ways.store(ways.get(), std::memory_order_release);
  problem.all_ways.push_back(std::move(ways));
  return *problem.ways.load(std::memory_order_relaxed);
}

void contextune_function::publish(Problem& problem, std::unique_ptr<const Ways> ways) {
  const std::lock_guard lock(mutex_);
  // Of several threads that found out that the default cannot run, the one counts that got further.
  if (ways->num_failed <= problem.ways.load(std::memory_order_relaxed)->num_failed) return;
  problem.ways.store(ways.get(), std::memory_order_release);
  problem.all_ways.push_back(std::move(ways));
}

std::uint32_t contextune_function::settled(const Problem& problem) const noexcept {
  const Ways* const ways = problem.ways.load(std::memory_order_acquire);
  if (ways == nullptr) return CONTEXTUNE_UNSETTLED;
  if (ways->number == CONTEXTUNE_UNTUNED) {
    // Where its ranks were not found, each call says so.
    const bool runs_default = !ways->kept.empty() && problem.why_untuned.empty();
    return runs_default ? ways->kept.front() : CONTEXTUNE_UNSETTLED;
  }
  contextune_tunable* const made = tunable.load(std::memory_order_relaxed);
  // A problem that takes a near size's winner has none of its own, or near_as_of is out of date.
  const Problem* const near = problem.near.load(std::memory_order_acquire);
  if (near != nullptr && problem.near_as_of.load(std::memory_order_relaxed) ==
                             num_settled.load(std::memory_order_relaxed)) {
    const std::uint32_t theirs =
        contextune::api::settled_of(made, near->ways.load(std::memory_order_acquire)->number);
    if (ways->keeps(theirs)) return theirs;
  }
  return contextune::api::settled_of(made, ways->number);
}

bool contextune_function::find_near(Problem& problem, const Ways& ways) const {
  if (!problem.size || !problem.takes_near.load(std::memory_order_relaxed)) return false;
  // Read before the search: a problem that settles meanwhile has this looked up again.
  const std::uint64_t as_of = num_settled.load(std::memory_order_relaxed);
  const Problem* nearest = nullptr;
  const std::uint32_t count = problems_.size();
  for (std::uint32_t i = 0; i < count; ++i) {
    const Problem& one = *problems_.at(i);
    const Ways* const theirs = one.ways.load(std::memory_order_acquire);
    if (&one == &problem || theirs == nullptr || !one.size || one.family != problem.family)
      continue;
    // A problem that had no choice, or cannot be tuned, runs its default without comparing it with
    // anything.
    if (theirs->kept.size() < 2 || theirs->number == CONTEXTUNE_UNTUNED) continue;
    if (!contextune::are_within(*one.size, *problem.size, nearest_within)) continue;
    const std::uint32_t config =
        contextune::api::settled_of(tunable.load(std::memory_order_relaxed), theirs->number);
    if (config == CONTEXTUNE_UNSETTLED || !ways.keeps(config)) continue;
    if (nearest == nullptr || contextune::is_nearer(*one.size, *nearest->size, *problem.size))
      nearest = &one;
  }
  problem.near_as_of.store(as_of, std::memory_order_relaxed);
  problem.near.store(nearest, std::memory_order_release);
  return nearest != nullptr;
}

std::string contextune_function::label(const Problem& problem) const {
  Key with_group = problem.key;
  const std::string& group = problem.group.empty() ? problem.found_group : problem.group;
  if (!group.empty()) with_group.add("group", group);
  const std::string key = with_group.to_string();
  return name + (key.empty() ? "" : "{" + key + "}");
}
