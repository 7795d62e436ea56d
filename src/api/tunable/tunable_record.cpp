#include "api/tunable/tunable_record.hpp"

#include <utility>

#include "api/named_values.hpp"

std::uint32_t contextune_tunable::number_of(const std::string& key_text) {
  const std::lock_guard lock(mutex_);
  return problems_.number_of(key_text, [&](contextune::api::TunableProblem& problem) {
    problem.key = contextune::api::parse_key(key_text);
    problem.text = key_text;
  });
}

void contextune_tunable::set_version(std::string version) {
  const std::lock_guard lock(mutex_);
  version_ = std::move(version);
}

std::string contextune_tunable::version() const {
  const std::lock_guard lock(mutex_);
  return version_;
}
