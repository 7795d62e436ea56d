#include "api/choice/choice_record.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <utility>

#include "api/named_values.hpp"
#include "api/process.hpp"
#include "api/tunable/code_version.hpp"
#include "core/agreement/rank_list.hpp"
#include "core/value/take_until.hpp"
#include "intercept/host/environment_options.hpp"
#include "space/nearest_name.hpp"

namespace contextune::api {
namespace {

/// The names in a list that commas separate.
std::vector<std::string> listed_names(std::string_view list) {
  std::vector<std::string> names;
  while (!list.empty()) {
    const std::string_view one = take_until(list, ',');
    const std::size_t first = one.find_first_not_of(' ');
    if (first != std::string_view::npos)
      names.emplace_back(one.substr(first, one.find_last_not_of(' ') + 1 - first));
  }
  return names;
}

}  // namespace

ChoiceProblem* ChoiceProblem::on(int wanted) noexcept {
  ChoiceProblem* one = this;
  while (one != nullptr && one->on_device.load(std::memory_order_relaxed) != wanted)
    one = one->elsewhere.load(std::memory_order_acquire);
  return one;
}

}  // namespace contextune::api

using contextune::api::ChoiceCandidate;
using contextune::api::ChoiceProblem;
using contextune::api::Implementation;
using contextune::api::listed_names;

void contextune_choice::close() {
  // The sets of implementations that each name has, in the order of their first calls.
  static auto* const mutex = new std::mutex;
  static auto* const kept = new std::map<std::string, std::vector<std::string>>;
  std::string all;
  declaration = contextune::api::declaration_of(version);
  for (const Implementation& one : implementations) {
    const std::string own = contextune::api::declaration_of(one.version, one.name);
    if (!own.empty()) declaration += (declaration.empty() ? "" : " ") + own;
    all += one.name + '\n';
    for (const contextune::Config& config : one.configs) all += config.to_string() + '\n';
  }
  const std::lock_guard lock(*mutex);
  std::vector<std::string>& sets = (*kept)[name];
  const auto found = std::ranges::find(sets, all);
  const auto number = static_cast<std::size_t>(found - sets.begin());
  if (found == sets.end()) sets.push_back(std::move(all));
  site_name = number == 0 ? name : name + "#" + std::to_string(number + 1);
}

contextune::Key contextune_choice::site_key(const ChoiceProblem& problem) const {
  contextune::Key key = problem.key;
  if (!group.ranks.empty() && !group.is_whole_job)
    key.add("group", contextune::text_of_ranks(group.ranks));
  return key;
}

ChoiceProblem* contextune_choice::problem(std::uint32_t number) noexcept {
  ChoiceProblem* const known = first(number);
  if (known == nullptr) return nullptr;
  if (!known->is_ready.load(std::memory_order_acquire)) {
    contextune::intercept::Runtime* const now = contextune::api::runtime();
    if (now == nullptr) {
      say_if_foreign();
      return nullptr;
    }
    try {
      const std::lock_guard lock(mutex_);
      make_ready(*known, *now);
    } catch (const std::exception&) {
      return nullptr;
    }
  }
  if (is_shared()) return known;
  const int device = contextune::api::current_device();
  if (device < 0) return known;  // where nothing can run
  ChoiceProblem* const here = known->on(device);
  return here != nullptr ? here : make_on(*known, device);
}

void contextune_choice::say_if_foreign() noexcept {
  const contextune_api* const running = contextune::api::active_api();
  if (running == contextune::api::own_api()) return;
  if (is_foreign.load(std::memory_order_relaxed) || is_foreign.exchange(true)) return;
  Dl_info own{};
  static_cast<void>(dladdr(contextune::api::own_api(), &own));
  running->choice_runs_default(name.c_str(),
                               own.dli_fname == nullptr ? "libcontextune.so" : own.dli_fname);
}

ChoiceProblem* contextune_choice::make_on(ChoiceProblem& first, int device) noexcept {
  const std::lock_guard lock(mutex_);
  if (ChoiceProblem* const known = first.on(device)) return known;  // another thread was faster
  if (first.on_device.load(std::memory_order_relaxed) < 0) {
    first.on_device.store(device, std::memory_order_relaxed);
    return &first;
  }
  try {
    auto made = std::make_unique<ChoiceProblem>();
    made->bytes = first.bytes;
    made->type = first.type;
    made->ranks = first.ranks;
    made->key_text = first.key_text;
    made->key = first.key;
    made->label = first.label;
    made->on_device.store(device, std::memory_order_relaxed);
    find_candidates(*made);
    made->is_ready.store(true, std::memory_order_relaxed);
    made->elsewhere.store(first.elsewhere.load(std::memory_order_relaxed),
                          std::memory_order_relaxed);
    first.elsewhere.store(made.get(), std::memory_order_release);
    return made.release();  // as long as the first
  } catch (const std::exception&) {
    return nullptr;
  }
}

std::uint32_t contextune_choice::number_of(const contextune_problem& asked) {
  contextune::Key key;
  if (asked.bytes != 0) key.add("bytes", buckets.key_part(asked.bytes));
  if (asked.type != nullptr && *asked.type != '\0') key.add("type", std::string(asked.type));
  if (asked.ranks > 1) key.add("ranks", asked.ranks);
  if (asked.key != nullptr && *asked.key != '\0') key.append(contextune::api::parse_key(asked.key));
  const std::string text = key.to_string();
  const std::lock_guard lock(mutex_);
  return problems_.number_of(text, [&](ChoiceProblem& problem) {
    if (asked.bytes != 0) problem.bytes = buckets.bucket_of(asked.bytes);
    problem.type = asked.type == nullptr ? "" : asked.type;
    problem.ranks = asked.ranks;
    problem.key_text = asked.key == nullptr ? "" : asked.key;
    problem.key = key;
    problem.label = text.empty() ? site_name : site_name + "{" + text + "}";
    if (contextune::intercept::Runtime* now = contextune::api::runtime()) make_ready(problem, *now);
  });
}

void contextune_choice::make_ready(ChoiceProblem& problem,
                                   contextune::intercept::Runtime& runtime) {
  if (problem.is_ready.load(std::memory_order_relaxed)) return;  // another thread was faster
  if (!std::exchange(knows_operator_, true)) {
    read_options(runtime);
    read_rule(runtime);
  }
  problem.candidates.clear();  // what is left where memory was short
  problem.unsupported.clear();
  find_candidates(problem);
  problem.is_ready.store(true, std::memory_order_release);
}

bool contextune_choice::can_do(const Implementation& implementation, const ChoiceProblem& problem) {
  if (implementation.supports == nullptr) return true;
  contextune_problem asked{};
  asked.size = sizeof asked;
  asked.type = problem.type.empty() ? nullptr : problem.type.c_str();
  asked.ranks = problem.ranks;
  asked.key = problem.key_text.empty() ? nullptr : problem.key_text.c_str();
  const contextune::SizeBucket sizes = problem.bytes.value_or(contextune::SizeBucket{0, 0});
  for (const std::uint64_t bytes : {sizes.low, sizes.high}) {
    asked.bytes = bytes;
    if (implementation.supports(implementation.user, &asked) == 0) return false;
    if (sizes.low == sizes.high) break;
  }
  return true;
}

std::vector<ChoiceProblem*> contextune_choice::of_other_sizes(const ChoiceProblem& problem) {
  std::vector<ChoiceProblem*> found;
  const std::lock_guard lock(mutex_);
  const std::uint32_t count = problems_.size();
  for (std::uint32_t i = 0; i < count; ++i) {
    ChoiceProblem* const one = first(i)->on(problem.on_device.load(std::memory_order_relaxed));
    if (one != nullptr && one != &problem && one->is_ready.load(std::memory_order_relaxed) &&
        one->bytes && one->type == problem.type && one->ranks == problem.ranks &&
        one->key_text == problem.key_text) {
      found.push_back(one);
    }
  }
  return found;
}

bool contextune_choice::is_wanted(const Implementation& one) const {
  if (!pin_.empty()) return one.name == pin_;
  if (!only_.empty() && std::ranges::find(only_, one.name) == only_.end()) return false;
  if (std::ranges::find(exclude_, one.name) != exclude_.end()) return false;
  if (options.fusion == contextune_fusion_on) return one.fusion != contextune_fusion_off;
  if (options.fusion == contextune_fusion_off) return one.fusion != contextune_fusion_on;
  return true;
}

void contextune_choice::read_options(contextune::intercept::Runtime& runtime) {
  contextune::Options author;
  author.select = options.select == contextune_select_immediate ? contextune::Select::Immediate
                                                                : contextune::Select::Deferred;
  author.fusion = static_cast<contextune::Fusion>(options.fusion);
  author.implementations = only;
  const contextune::Options wanted = contextune::intercept::options_over(author);
  options.select = static_cast<contextune_select>(wanted.select);
  options.fusion = static_cast<contextune_fusion>(wanted.fusion);
  std::string missing;
  for (const std::string& named : listed_names(wanted.implementations)) {
    const bool has_it = std::ranges::any_of(
        implementations, [&](const Implementation& one) { return one.name == named; });
    if (has_it) only_.push_back(named);
    if (!has_it) missing += (missing.empty() ? "'" : ", '") + named + "'";
  }
  if (missing.empty()) return;
  std::vector<std::string_view> known;
  for (const Implementation& one : implementations) known.push_back(one.name);
  runtime.log().fault(
      "option implementations names " + missing + ", and choice '" + name +
      "' has no such implementation: its own are " + contextune::space::enumeration(known) +
      (only_.empty() ? "; all of them may run" : "; the others that are named may run"));
}

void contextune_choice::read_rule(contextune::intercept::Runtime& runtime) {
  const contextune::space::ChoiceDeclaration* const rule = runtime.choice_rule(name);
  if (rule == nullptr) return;
  std::vector<std::string_view> known;
  for (const Implementation& one : implementations) known.push_back(one.name);
  const auto has = [&](const std::string& wanted, const char* in) {
    if (std::ranges::find(known, wanted) != known.end()) return true;
    runtime.log().fault(rule->place + ": choice '" + name + "': " + in + " names '" + wanted +
                        "', which is none of its implementations: they are " +
                        contextune::space::enumeration(known) + "; it is left out");
    return false;
  };
  if (!rule->pin.empty() && has(rule->pin, "pin")) pin_ = rule->pin;
  for (const std::string& one : rule->exclude)
    if (has(one, "exclude")) exclude_.push_back(one);
}

void contextune_choice::find_candidates(ChoiceProblem& problem) const {
  std::vector<std::uint32_t> able;
  for (std::uint32_t i = 0; i < implementations.size(); ++i) {
    const bool can = i == 0 || can_do(implementations[i], problem);
    if (can && is_wanted(implementations[i])) {
      able.push_back(i);
    } else {
      problem.unsupported.push_back(i);
    }
  }
  if (able.empty()) {
    able.push_back(0);
    std::erase(problem.unsupported, 0U);
  }
  for (const std::uint32_t i : able) {
    const Implementation& one = implementations[i];
    for (std::uint32_t c = 0; c < one.configs.size(); ++c) {
      ChoiceCandidate& candidate = problem.candidates.emplace_back();
      candidate.implementation = i;
      candidate.config = c;
      candidate.full.set("implementation", one.name);
      for (const auto& [parameter, value] : one.configs[c].entries())
        candidate.full.set(parameter, value);
    }
  }
}
