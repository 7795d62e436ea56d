#pragma once

#include <string>
#include <vector>

#include <contextune/contextune.h>

#include "core/value/kernel_rule.hpp"

namespace contextune::api {

/// A kernel that was declared through the C functions, as the port that launches ask. Owns copies
/// of all text; the callbacks and their `user` live as long as the process.
class DeclaredRule final : public KernelRule {
 public:
  /// @throws Error if a field is missing, or a config cannot be read or is given twice
  explicit DeclaredRule(const contextune_kernel& declared);

  [[nodiscard]] std::string_view kernel() const override { return name_; }
  [[nodiscard]] std::string_view origin() const override { return origin_; }
  [[nodiscard]] Key key(const LaunchView& launch, LaunchReads& reads) override;
  [[nodiscard]] bool keys_by_size() const override { return callbacks_.keys_by_size != 0; }
  [[nodiscard]] UnseenSize unseen() const override {
    return static_cast<UnseenSize>(callbacks_.unseen);
  }
  [[nodiscard]] std::vector<Config> configs(const LaunchView& launch) override;
  [[nodiscard]] LaunchChange apply(const Config& config, const LaunchView& launch,
                                   LaunchReads& reads) override;
  [[nodiscard]] std::optional<int> n_warmup() const override;
  [[nodiscard]] std::optional<int> n_repeat() const override;

  /// The declaration, with pointers into this object.
  [[nodiscard]] contextune_kernel declaration(std::vector<const char*>& configs) const;

 private:
  [[nodiscard]] std::string failure_of(const char* callback, const char* text) const;
  [[nodiscard]] std::size_t number_of(const Config& config) const;

  contextune_kernel callbacks_;
  std::string name_;
  std::string origin_;
  std::vector<std::string> texts_;
  std::vector<Config> configs_;
};

/// Configs from text.
/// @throws Error that names `what` if there is none, one cannot be read, or two are equal
[[nodiscard]] std::vector<Config> read_configs(const std::string& what, const char* const* texts,
                                               std::size_t num_texts);

}  // namespace contextune::api
