#include <contextune/tunable.hpp>

#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include <contextune/error.hpp>

namespace contextune {

/// Numbers of the keys seen so far, in front of the library's own table, which takes text.
struct TunableBase::Problems {
  std::shared_mutex mutex;
  std::unordered_map<Key, std::uint32_t> numbers;
};

TunableBase::TunableBase(const std::string& name, const ConfigSpace& space)
    : name_(name), problems_(std::make_unique<Problems>()) {
  try {
    configs_ = space.configs();
  } catch (const Error& error) {
    throw Error("tunable '" + name + "': " + error.what());
  }
  std::vector<std::string> texts;
  texts.reserve(configs_.size());
  for (const Config& config : configs_) texts.push_back(config.to_string());
  std::vector<const char*> pointers;
  pointers.reserve(texts.size());
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  handle_ = contextune_tunable_create(name.c_str(), pointers.data(), pointers.size());
  if (handle_ == nullptr) throw Error(contextune_error());
}

TunableBase::~TunableBase() = default;
TunableBase::TunableBase(TunableBase&&) noexcept = default;
TunableBase& TunableBase::operator=(TunableBase&&) noexcept = default;

void TunableBase::set_passes(int n_warmup, int n_repeat) {
  if (n_warmup < 0 || n_repeat < 1) {
    throw Error("tunable '" + name_ + "': n_warmup is " + std::to_string(n_warmup) +
                " and n_repeat is " + std::to_string(n_repeat) + "; they must be at least 0 and 1");
  }
  if (contextune_tunable_passes(handle_, n_warmup, n_repeat) != 0) throw Error(contextune_error());
}

std::uint32_t TunableBase::problem(const Key& key) const {
  {
    const std::shared_lock lock(problems_->mutex);
    if (const auto found = problems_->numbers.find(key); found != problems_->numbers.end()) {
      return found->second;
    }
  }
  const std::uint32_t number = contextune_tunable_key(handle_, key.to_string().c_str());
  const std::unique_lock lock(problems_->mutex);
  problems_->numbers.emplace(key, number);
  return number;
}

}  // namespace contextune
