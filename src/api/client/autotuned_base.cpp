#include <contextune/autotuned_base.hpp>

#include <algorithm>
#include <array>
#include <iostream>

#include <contextune/error.hpp>

#include "api/client/config_texts.hpp"

namespace contextune {
namespace {

std::string device_text(const Device& device) {
  if (!device.name.empty()) return device.name;
  if (device.num_sms == 0) return "unknown device";
  return "device with " + std::to_string(device.num_sms) + " SMs";
}

}  // namespace

AutotunedBase::AutotunedBase(std::string name, AutotuneOptions options)
    : shared_(std::make_unique<Shared>()) {
  shared_->name = std::move(name);
  shared_->options = std::move(options);
  if (shared_->name.empty()) throw Error("a function is autotuned without a name; give it one");
  if (shared_->options.n_warmup < 0 || shared_->options.n_repeat < 1) {
    refuse("n_warmup is " + std::to_string(shared_->options.n_warmup) + " and n_repeat is " +
           std::to_string(shared_->options.n_repeat) + "; they must be at least 0 and 1");
  }
}
AutotunedBase::AutotunedBase(AutotunedBase&&) noexcept = default;
AutotunedBase& AutotunedBase::operator=(AutotunedBase&&) noexcept = default;
AutotunedBase::~AutotunedBase() = default;

void AutotunedBase::refuse(const std::string& what) const {
  throw Error("function '" + shared_->name + "': " + what);
}

void AutotunedBase::declare(std::vector<Config> configs, const Device* device) {
  const std::string where = device == nullptr ? "" : " on " + device_text(*device);
  if (configs.empty()) {
    refuse("its config space is empty" + where + "; give it at least one config");
  }
  const ConfigTexts texts(configs);
  contextune_tunable* const made =
      contextune_tunable_create(shared_->name.c_str(), texts.data(), texts.size());
  if (made == nullptr || contextune_tunable_span(made) != 0 ||
      contextune_tunable_version(made, options().version.c_str()) != 0)
    refuse(contextune_error() + where);
  shared_->configs = std::move(configs);
  shared_->tunable.store(made, std::memory_order_release);
}

std::string AutotunedBase::failure_of(const Key& key, const Pruning& pruning) const {
  std::string text = "function '" + name() + "': no config can run for '" + key.to_string() + "':";
  for (const auto& [config, why] : pruning.reasons)
    text += "\n  " + configs()[config].to_string() + ": " + why;
  return text;
}

AutotunedBase::Problem& AutotunedBase::add(std::unique_ptr<Problem> problem, Pruning pruning) {
  if (pruning.kept.empty()) {
    problem->failure = failure_of(problem->key, pruning);
  } else {
    problem->kept = std::move(pruning.kept);
    if (problem->why_untuned.empty()) number(*problem, pruning.pruned);
  }
  return shared_->problems.add(std::move(problem));
}

void AutotunedBase::number(Problem& problem, const contextune_pruned& pruned) const {
  Key key = problem.key;
  // Other configs are another problem.
  if (problem.num_failed > 0) key.add("failed", std::int64_t{problem.num_failed});
  const std::uint32_t found = contextune_tunable_key(handle(), key.to_string().c_str());
  // Refused where there are too many, or where another function of that name keeps others; the log
  // says so, and the default runs.
  const bool known = contextune_tunable_keep(handle(), found, problem.kept.data(),
                                             problem.kept.size(), &pruned) == 0;
  problem.number = known ? found : Problem::untuned;
}

std::unique_ptr<AutotunedBase::Problem> AutotunedBase::without_default(
    const Problem& problem, const Reasons& failures, std::exception_ptr thrown) const {
  if (problem.kept.size() == 1) {
    Pruning none;
    none.reasons = failures;
    const Error error(failure_of(problem.key, none));
    if (thrown == nullptr) throw error;
    try {
      std::rethrow_exception(std::move(thrown));
    } catch (...) {
      std::throw_with_nested(error);
    }
  }
  auto rest = std::make_unique<Problem>();
  rest->at = problem.at;
  rest->key = problem.key;
  rest->communicator = problem.communicator;
  rest->size = problem.size;
  rest->kept.assign(problem.kept.begin() + 1, problem.kept.end());
  rest->num_failed = problem.num_failed + 1;
  contextune_pruned pruned{};
  pruned.failed = rest->num_failed;
  number(*rest, pruned);
  return rest;
}

AutotunedBase::Problem& AutotunedBase::publish(const Problem& old, std::unique_ptr<Problem> by) {
  Problem& published = *by;
  shared_->problems.replace(old, std::move(by));
  return published;
}

bool AutotunedBase::find_near(Problem& problem) const {
  if (!problem.size || !problem.takes_near.load(std::memory_order_relaxed)) return false;
  // Read before the search: a problem that settles meanwhile has this looked up again.
  const std::uint64_t as_of = shared_->num_settled.load(std::memory_order_relaxed);
  const Problem* nearest = nullptr;
  for (const Problem* one : shared_->problems.of_other_sizes(problem)) {
    // A problem that had no choice, or cannot be tuned, runs its default without comparing it with
    // anything.
    if (one->kept.size() < 2 || one->number == Problem::untuned) continue;
    if (!are_within(*one->size, *problem.size, options().nearest_within)) continue;
    const std::uint32_t config = contextune_tunable_settled(handle(), one->number);
    if (config == CONTEXTUNE_UNSETTLED || !problem.keeps(config)) continue;
    if (nearest == nullptr || is_nearer(*one->size, *nearest->size, *problem.size)) nearest = one;
  }
  problem.near_as_of.store(as_of, std::memory_order_relaxed);
  problem.near.store(nearest, std::memory_order_release);
  return nearest != nullptr;
}

void AutotunedBase::drop(Problem& problem, std::uint32_t config) const noexcept {
  if (problem.near.exchange(nullptr) != nullptr)
    problem.takes_near.store(false, std::memory_order_relaxed);
  contextune_call call;
  const bool same = contextune_tunable_begin(handle(), problem.number, &call) == config;
  static_cast<void>(contextune_tunable_end(&call, same ? 0 : 1));
}

RegionOptions AutotunedBase::region_options(void* communicator) const {
  RegionOptions chosen = options().region;
  chosen.communicator = communicator;
  if (options().repeatable) chosen.repeatable = true;
  if (!options().restore.empty()) chosen.restore = options().restore;
  if (!chosen.n_warmup) chosen.n_warmup = options().n_warmup;
  if (!chosen.n_repeat) chosen.n_repeat = options().n_repeat;
  if (!chosen.schedule) chosen.schedule = ScheduleKind::Table;
  if (!chosen.selection) chosen.selection = Selection::Median;
  if (!chosen.refine) chosen.refine = false;
  if (!chosen.confirm) chosen.confirm = true;
  if (!chosen.align) chosen.align = Align::Sample;
  return chosen;
}

Config AutotunedBase::override_of(const Config& config, const Config& set) const {
  if (!options().allow_override) {
    refuse("a call sets '" + set.to_string() +
           "' by hand; give the option allow_override where the function is declared");
  }
  Config changed = config;
  for (const auto& [parameter, value] : set.entries()) {
    if (config.find(parameter) == nullptr)
      refuse("a call sets '" + parameter + "', and its configs have no such parameter");
    changed.set(parameter, value);
  }
  return changed;
}

bool AutotunedBase::find_group(void* communicator, std::string& text) {
  std::array<char, 4096> ranks{};
  const bool found = contextune_communicator_ranks(communicator, ranks.data(), ranks.size()) == 0;
  text = found ? ranks.data() : contextune_error();
  return found;
}

void AutotunedBase::say_untuned(const Problem& problem, bool verbose) const {
  if (problem.why_untuned.empty()) return;
  std::string again;
  static_cast<void>(find_group(problem.communicator, again));
  if (verbose) say(problem, "runs its default: " + problem.why_untuned);
}

void AutotunedBase::say(const Problem& problem, const std::string& what) const {
  const std::string key = problem.key.to_string();
  std::clog << "contextune: " + name() + (key.empty() ? "" : "{" + key + "}") + ": " + what + "\n";
}

bool AutotunedBase::claim_hints() noexcept {
  if (shared_->hints_claimed.load(std::memory_order_acquire)) return false;
  return !options().hints.empty() && !shared_->hints_claimed.exchange(true);
}

}  // namespace contextune
