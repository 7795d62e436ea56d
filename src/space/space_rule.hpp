#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/value/kernel_rule.hpp"
#include "space/script.hpp"

namespace contextune::space {

/// The rule for one kernel of a space file. Keeps the file's script alive; calls on rules of one
/// file exclude each other.
class SpaceRule final : public KernelRule {
 public:
  SpaceRule(std::shared_ptr<Script> script, std::size_t index);

  [[nodiscard]] std::string_view kernel() const override { return declaration_.name; }
  [[nodiscard]] std::string_view origin() const override { return origin_; }

  /// The key that `key` returned, and the bucket of what `size` returned; further a part "kept"
  /// where `prune` looks at the launch: launches for which it keeps other configs are other
  /// problems.
  [[nodiscard]] Key key(const LaunchView& launch, LaunchReads& reads) override;
  [[nodiscard]] bool keys_by_size() const override { return bool(declaration_.size); }
  [[nodiscard]] UnseenSize unseen() const override { return declaration_.unseen; }
  [[nodiscard]] std::vector<Config> configs(const LaunchView& launch) override;
  [[nodiscard]] LaunchChange apply(const Config& config, const LaunchView& launch,
                                   LaunchReads& reads) override;

  [[nodiscard]] bool co_resident() const override { return declaration_.co_resident; }
  [[nodiscard]] std::string meaning() const override { return identity_; }
  [[nodiscard]] std::optional<int> n_warmup() const override { return declaration_.n_warmup; }
  [[nodiscard]] std::optional<int> n_repeat() const override { return declaration_.n_repeat; }

  /// The name in the form in which names are compared.
  [[nodiscard]] const std::string& normalised() const { return normalised_; }

 private:
  class Call;

  [[nodiscard]] std::span<const ArgumentType> argument_types(const LaunchView& launch);
  void check_declared_types(const LaunchView& launch) const;

  std::shared_ptr<Script> script_;
  const KernelDeclaration& declaration_;
  std::string origin_;
  std::string normalised_;
  std::string identity_;
  std::string derived_from_;  ///< parameter list that `derived_types_` were made for
  std::vector<ArgumentType> derived_types_;
};

}  // namespace contextune::space
