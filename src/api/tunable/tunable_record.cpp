#include "api/tunable/tunable_record.hpp"

#include <utility>

#include "api/named_values.hpp"

std::uint32_t contextune_tunable::number_of(const std::string& key_text, const std::string& group) {
  const std::lock_guard lock(mutex_);
  // No text of a key holds a line's end.
  return problems_.number_of(group.empty() ? key_text : key_text + "\n" + group,
                             [&](contextune::api::TunableProblem& problem) {
                               problem.key = contextune::api::parse_key(key_text);
                               if (!group.empty()) problem.key.add("group", group);
                               problem.text = key_text;
                               problem.group = group;
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
