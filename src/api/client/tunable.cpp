#include <contextune/tunable.hpp>

#include <contextune/error.hpp>

#include "api/client/config_texts.hpp"

namespace contextune {

TunableBase::TunableBase(const std::string& name, const ConfigSpace& space)
    : name_(name), problems_(std::make_unique<detail::ProblemTable>()) {
  try {
    configs_ = space.configs();
  } catch (const Error& error) {
    throw Error("tunable '" + name + "': " + error.what());
  }
  const ConfigTexts texts(configs_);
  handle_ = contextune_tunable_create(name.c_str(), texts.data(), texts.size());
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

void TunableBase::set_version(const std::string& version) {
  if (contextune_tunable_version(handle_, version.c_str()) != 0) throw Error(contextune_error());
}

void TunableBase::time_as_span() {
  if (contextune_tunable_span(handle_) != 0) throw Error(contextune_error());
}

std::uint32_t TunableBase::add(detail::CallKey at, const Key& key) const {
  const std::uint32_t number = contextune_tunable_key(handle_, key.to_string().c_str());
  if (problems_->is_full()) return number;
  auto problem = std::make_unique<detail::KnownProblem>();
  problem->at = std::move(at);
  problem->number = number;
  return problems_->add(std::move(problem)).number;
}

}  // namespace contextune
