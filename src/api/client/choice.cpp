#include <contextune/choice.hpp>

#include <algorithm>

#include <contextune/error.hpp>

#include "api/client/config_texts.hpp"

namespace contextune {

ChoiceBase::ChoiceBase(std::string name, const ChoiceOptions& options)
    : name_(std::move(name)),
      ranks_(options.ranks),
      buckets_(options.buckets),
      unseen_(options.unseen),
      hints_(options.hints),
      hints_claimed_(options.hints.empty()) {
  contextune_choice_options given{};
  given.size = sizeof given;
  given.select = static_cast<contextune_select>(options.select);
  given.fusion = static_cast<contextune_fusion>(options.fusion);
  given.implementations = options.implementations.c_str();
  given.ranks = options.ranks;
  given.communicator = options.communicator;
  given.tolerance = options.tolerance.c_str();
  given.repeatable = options.repeatable ? 1 : 0;
  given.calls_per_pass = options.calls_per_pass;
  given.n_warmup = options.n_warmup;
  given.n_repeat = options.n_repeat;
  const std::string buckets = buckets_.to_string();
  given.buckets = buckets.c_str();
  given.version = options.version.c_str();
  given.group = options.group.c_str();
  given.unseen = static_cast<contextune_unseen>(options.unseen);
  given.nearest_within = options.nearest_within;
  handle_ = contextune_choice_create(name_.c_str(), &given);
  if (handle_ == nullptr) throw Error(contextune_error());
}

void ChoiceBase::refuse(const std::string& what) const {
  throw Error("choice '" + name_ + "': " + what);
}

void ChoiceBase::check(int status) {
  if (status != 0) throw Error(contextune_error());
}

int ChoiceBase::supports(void* way, const contextune_problem* problem) noexcept {
  try {
    const Problem asked{problem->bytes, problem->type == nullptr ? "" : problem->type,
                        problem->ranks, problem->key == nullptr ? "" : problem->key};
    return static_cast<Way*>(way)->options.supports(asked) ? 1 : 0;
  } catch (...) {
    return 0;
  }
}

void ChoiceBase::abandon(void* way) noexcept {
  try {
    static_cast<Way*>(way)->options.abandon();
  } catch (...) {
    // Whether the work ended is looked at afterwards.
  }
}

void ChoiceBase::add_way(std::string name, const ConfigSpace* space, contextune_fusion fusion,
                         ImplementationOptions options) {
  auto way = std::make_unique<Way>();
  way->name = std::move(name);
  way->options = std::move(options);
  try {
    if (space != nullptr) {
      way->configs = space->configs();
    } else {
      way->configs.emplace_back();
    }
  } catch (const Error& error) {
    throw Error("choice '" + name_ + "', implementation '" + way->name + "': " + error.what());
  }
  const ConfigTexts texts(way->configs);
  contextune_implementation given{};
  given.size = sizeof given;
  given.name = way->name.c_str();
  given.configs = texts.data();
  given.num_configs = texts.size();
  given.version = way->options.version.c_str();
  given.fusion = fusion;
  given.user = way.get();
  if (way->options.supports) given.supports = &ChoiceBase::supports;
  if (way->options.abandon) given.abandon = &ChoiceBase::abandon;
  check(contextune_choice_add(handle_, &given));
  ways_.push_back(std::move(way));
}

std::uint32_t ChoiceBase::add_problem(detail::CallKey at, const Problem& problem, const Key& key,
                                      bool is_kept) {
  const std::string type(problem.type);
  const std::string text = key.to_string();
  contextune_problem given{};
  given.size = sizeof given;
  given.bytes = problem.bytes;
  given.type = type.c_str();
  given.ranks = ranks_;
  given.key = text.c_str();
  const std::uint32_t number = contextune_choice_problem(handle_, &given);
  // Keys may be endless, and this memory is not.
  if (number == detail::KnownProblem::untuned || !is_kept || problems_.is_full()) return number;
  auto added = std::make_unique<detail::KnownProblem>();
  added->at = std::move(at);
  added->number = number;
  return problems_.add(std::move(added)).number;
}

bool ChoiceBase::is_to_be_measured(std::uint32_t number) const {
  if (contextune_choice_wants(handle_, number) != contextune_want_call) return true;
  if (unseen_ == UnseenSize::Tune) return false;
  const std::vector<ChoiceTiming> known = timings_of(number);
  return !known.empty() && std::none_of(known.begin(), known.end(),
                                        [](const ChoiceTiming& one) { return one.samples > 0; });
}

std::vector<ChoiceTiming> ChoiceBase::timings_of(std::uint32_t number) const {
  std::vector<contextune_timing> found(contextune_choice_timings(handle_, number, nullptr, 0));
  const std::size_t count = contextune_choice_timings(handle_, number, found.data(), found.size());
  found.resize(std::min(count, found.size()));
  std::vector<ChoiceTiming> timings;
  for (const contextune_timing& one : found) {
    ChoiceTiming& timing = timings.emplace_back();
    timing.implementation = ways_[one.implementation]->name;
    timing.config = ways_[one.implementation]->configs[one.config];
    timing.seconds = one.seconds;
    timing.samples = one.samples;
    timing.state = one.state;
    timing.is_winner = one.is_winner != 0;
  }
  return timings;
}

void ChoiceBase::name_memory(const ChoiceMemory& memory, std::vector<contextune_memory>& list) {
  for (const DeviceSpan& span : memory.outputs) list.push_back({span.pointer, span.size_bytes, 1});
  for (const DeviceSpan& span : memory.others) list.push_back({span.pointer, span.size_bytes, 0});
}

}  // namespace contextune
