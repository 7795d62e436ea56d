#include <contextune/autotuned_base.hpp>

#include <iostream>
#include <utility>

#include <contextune/error.hpp>

#include "api/client/config_texts.hpp"
#include "api/client/region_setup.hpp"

namespace contextune {

AutotunedBase::CallFrame::CallFrame(const AutotunedBase& called, const CallOptions& options)
    : function(called), set(options.set) {
  given.size = sizeof given;
  given.user = this;
  given.begin = &CallFrame::begin;
  if (options.verbose || called.options().verbose) given.say = &CallFrame::say;
  given.says_runs = options.verbose ? 1 : 0;
  given.is_untuned = options.tune ? 0 : 1;
  if (!set.empty()) given.set = set_text.c_str();
}

void AutotunedBase::CallFrame::check(int status) const {
  if (restore_failed) std::rethrow_exception(restore_failed);
  if (status == CONTEXTUNE_FUNCTION_LEFT) std::rethrow_exception(thrown);
  if (status != CONTEXTUNE_FUNCTION_FAILED) return;
  const Error error(contextune_error());
  if (!thrown) throw error;
  try {
    std::rethrow_exception(thrown);
  } catch (...) {
    std::throw_with_nested(error);
  }
}

int AutotunedBase::CallFrame::begin(void* frame, contextune_entry* entry) noexcept {
  auto* const call = static_cast<CallFrame*>(frame);
  const AutotuneOptions& options = call->function.options();
  try {
    RegionOptions chosen = options.region;
    if (!options.restore.empty()) chosen.restore = options.restore;
    set_up_region(*entry, chosen);
    if (chosen.restore.call() &&
        contextune_region_restore_call(entry, &CallFrame::restore, frame) != 0)
      throw Error(contextune_error());
    return 0;
  } catch (...) {
    call->thrown = std::current_exception();
    return -1;
  }
}

int AutotunedBase::CallFrame::restore(void* frame) noexcept {
  auto* const call = static_cast<CallFrame*>(frame);
  const AutotuneOptions& options = call->function.options();
  try {
    (options.restore.empty() ? options.region.restore : options.restore).call()();
    return 0;
  } catch (...) {
    call->restore_failed = std::current_exception();
    return -1;
  }
}

void AutotunedBase::CallFrame::say(void* /*frame*/, const char* text) noexcept {
  try {
    std::clog << std::string("contextune: ") + text + "\n";
  } catch (const std::exception&) {
    // It is not said, then.
  }
}

AutotunedBase::AutotunedBase(std::string name, AutotuneOptions options)
    : shared_(std::make_unique<Shared>()) {
  shared_->name = std::move(name);
  shared_->options = std::move(options);
}
AutotunedBase::AutotunedBase(AutotunedBase&&) noexcept = default;
AutotunedBase& AutotunedBase::operator=(AutotunedBase&&) noexcept = default;
AutotunedBase::~AutotunedBase() = default;

void AutotunedBase::create(std::vector<Config> configs) {
  const ConfigTexts texts(configs);
  contextune_function_options listed{};
  const char* const none = nullptr;
  listed.configs = texts.size() == 0 ? &none : texts.data();
  listed.num_configs = texts.size();
  make(&listed);
  shared_->configs = std::move(configs);
}

void AutotunedBase::create() {
  make(nullptr);
}

void AutotunedBase::make(const contextune_function_options* listed) {
  const AutotuneOptions& from = shared_->options;
  // For the C function, no passes that count mean that nobody has said how many.
  if (from.n_repeat == 0)
    throw Error("function '" + shared_->name + "': n_repeat is 0; it must be at least 1");
  contextune_function_options given = listed == nullptr ? contextune_function_options{} : *listed;
  const std::string buckets = from.buckets.to_string();
  given.size = sizeof given;
  given.version = from.version.c_str();
  given.n_warmup = from.n_warmup;
  given.n_repeat = from.n_repeat;
  given.repeatable = from.repeatable ? 1 : 0;
  given.buckets = buckets.c_str();
  given.unseen = static_cast<contextune_unseen>(from.unseen);
  given.nearest_within = from.nearest_within;
  given.hints = from.hints.data();
  given.num_hints = from.hints.size();
  given.allow_override = from.allow_override ? 1 : 0;
  shared_->function.reset(contextune_function_create(shared_->name.c_str(), &given));
  if (shared_->function == nullptr) throw Error(contextune_error());
}

void AutotunedBase::add_configs(contextune_space& space, const std::vector<Config>& configs) {
  for (const Config& config : configs)
    if (contextune_space_add(&space, config.to_string().c_str()) != 0)
      throw Error(contextune_error());
}

std::uint32_t AutotunedBase::add(detail::CallKey at, const Key& key, const std::uint64_t* size,
                                 void* communicator) const {
  const std::string text = key.to_string();
  contextune_function_key given{};
  given.size = sizeof given;
  given.key = text.c_str();
  given.has_size = size == nullptr ? 0 : 1;
  given.of_size = size == nullptr ? 0 : *size;
  given.communicator = communicator;
  const std::uint32_t number = contextune_function_problem(handle(), &given);
  // Keys may be endless, and this memory is not.
  if (number == CONTEXTUNE_UNTUNED || shared_->problems.is_full()) return number;
  auto added = std::make_unique<detail::KnownProblem>();
  added->at = std::move(at);
  added->number = number;
  return shared_->problems.add(std::move(added)).number;
}

}  // namespace contextune
