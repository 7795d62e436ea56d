#include <contextune/choice.hpp>

#include <algorithm>

#include <contextune/error.hpp>

#include "api/client/config_texts.hpp"

namespace contextune {

/// A problem that was met before. Never changed, and freed with its choice.
struct ChoiceBase::Known {
  std::uint64_t bucket = 0;
  std::string type;
  std::int64_t extra = 0;
  std::optional<Key> key;
  std::uint32_t number = 0;
  Known* next = nullptr;

  [[nodiscard]] bool is(std::uint64_t of_bucket, std::string_view of_type, std::int64_t of_extra,
                        const Key* of_key) const {
    return bucket == of_bucket && extra == of_extra && type == of_type &&
           key.has_value() == (of_key != nullptr) && (of_key == nullptr || *key == *of_key);
  }
};

namespace {

/// As contextune_choice_problem answers: there are too many, or it cannot be read.
constexpr std::uint32_t no_problem = 0xffffffffU;

/// Whatever tells buckets apart; 0: there is no size.
std::uint64_t bucket_of(const Buckets& buckets, std::uint64_t bytes) noexcept {
  return bytes == 0 ? 0 : buckets.bucket_of(bytes).high;
}

contextune_unseen unseen_of(UnseenSize unseen) noexcept {
  switch (unseen) {
    case UnseenSize::Nearest:
      return contextune_unseen_nearest;
    case UnseenSize::Default:
      return contextune_unseen_default;
    case UnseenSize::Tune:
      break;
  }
  return contextune_unseen_tune;
}

}  // namespace

ChoiceBase::ChoiceBase(std::string name, const ChoiceOptions& options)
    : name_(std::move(name)),
      ranks_(options.ranks),
      buckets_(options.buckets),
      unseen_(options.unseen),
      hints_(options.hints),
      hints_claimed_(options.hints.empty()) {
  contextune_choice_options given{};
  given.size = sizeof given;
  given.select = options.select == Select::Immediate ? contextune_select_immediate
                                                     : contextune_select_deferred;
  given.fusion = options.fusion == Fusion::On    ? contextune_fusion_on
                 : options.fusion == Fusion::Off ? contextune_fusion_off
                                                 : contextune_fusion_auto;
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
  given.unseen = unseen_of(options.unseen);
  given.nearest_within = options.nearest_within;
  handle_ = contextune_choice_create(name_.c_str(), &given);
  if (handle_ == nullptr) throw Error(contextune_error());
}

ChoiceBase::~ChoiceBase() {
  for (auto& head : known_) {
    for (Known* one = head.load(); one != nullptr;) delete std::exchange(one, one->next);
  }
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
  given.fusion = fusion;
  given.user = way.get();
  if (way->options.supports) given.supports = &ChoiceBase::supports;
  if (way->options.abandon) given.abandon = &ChoiceBase::abandon;
  check(contextune_choice_add(handle_, &given));
  ways_.push_back(std::move(way));
}

std::uint32_t ChoiceBase::number_of(std::uint64_t bytes, std::string_view type, std::int64_t extra,
                                    bool has_extra, const Key* key) {
  const std::uint64_t bucket = bucket_of(buckets_, bytes);
  const std::uint64_t of_key = key == nullptr ? 0 : key->hash();
  const std::uint64_t mixed =
      (bucket + 31 * static_cast<std::uint64_t>(extra) + of_key) * 0x9e3779b97f4a7c15ULL;
  static_assert(std::tuple_size_v<decltype(known_)> == 64);
  std::atomic<Known*>& head = known_[mixed >> 58U];
  for (const Known* one = head.load(std::memory_order_acquire); one != nullptr; one = one->next)
    if (one->is(bucket, type, extra, key)) return one->number;
  return add_problem(bytes, type, extra, has_extra, key, head);
}

std::uint32_t ChoiceBase::add_problem(std::uint64_t bytes, std::string_view type,
                                      std::int64_t extra, bool has_extra, const Key* key,
                                      std::atomic<Known*>& head) {
  auto added = std::make_unique<Known>();
  added->bucket = bucket_of(buckets_, bytes);
  added->type = type;
  added->extra = extra;
  if (key != nullptr) added->key = *key;
  const std::string text = key != nullptr ? key->to_string()
                           : has_extra    ? "key=" + std::to_string(extra)
                                          : std::string();
  contextune_problem given{};
  given.size = sizeof given;
  given.bytes = bytes;
  given.type = added->type.c_str();
  given.ranks = ranks_;
  given.key = text.c_str();
  added->number = contextune_choice_problem(handle_, &given);
  if (added->number == no_problem)
    return no_problem;  // keys may be endless, and this memory is not
  Known* const one = added.release();
  one->next = head.load(std::memory_order_acquire);
  while (!head.compare_exchange_weak(one->next, one, std::memory_order_acq_rel)) {
  }
  return one->number;
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
