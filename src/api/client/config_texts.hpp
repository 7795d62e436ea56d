#pragma once

#include <string>
#include <vector>

#include <contextune/config.hpp>

namespace contextune {

/// Configs as the C interface takes them: a text each. The texts last as long as this.
class ConfigTexts {
 public:
  explicit ConfigTexts(const std::vector<Config>& configs) {
    texts_.reserve(configs.size());
    pointers_.reserve(configs.size());
    for (const Config& config : configs)
      pointers_.push_back(texts_.emplace_back(config.to_string()).c_str());
  }
  ConfigTexts(const ConfigTexts&) = delete;
  ConfigTexts& operator=(const ConfigTexts&) = delete;

  [[nodiscard]] const char* const* data() const noexcept { return pointers_.data(); }
  [[nodiscard]] std::size_t size() const noexcept { return pointers_.size(); }

 private:
  std::vector<std::string> texts_;
  std::vector<const char*> pointers_;
};

}  // namespace contextune
