#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "intercept/site/knob_provider.hpp"

namespace contextune::intercept {

/// The author's declaration about a kernel, in a space file or in C++.
class DeclaredKnobs final : public KnobProvider {
 public:
  explicit DeclaredKnobs(std::shared_ptr<KernelRule> rule) : rule_(std::move(rule)) {}

  [[nodiscard]] std::string_view name() const override { return "declared"; }
  [[nodiscard]] Key key(const KernelLaunch& launch, LaunchReads& reads) override {
    return rule_->key(launch.view, reads);
  }
  [[nodiscard]] bool keys_by_size() const override { return rule_->keys_by_size(); }
  [[nodiscard]] UnseenSize unseen() const override { return rule_->unseen(); }
  [[nodiscard]] std::vector<Config> configs(const KernelLaunch& launch) override {
    return rule_->configs(launch.view);
  }
  [[nodiscard]] VariantSpec apply(const Config& config, const KernelLaunch& launch,
                                  LaunchReads& reads) override {
    VariantSpec spec;
    spec.change = rule_->apply(config, launch.view, reads);
    spec.co_resident = rule_->co_resident();
    return spec;
  }
  [[nodiscard]] std::string meaning() const override { return rule_->meaning(); }
  [[nodiscard]] std::optional<int> n_warmup() const override { return rule_->n_warmup(); }
  [[nodiscard]] std::optional<int> n_repeat() const override { return rule_->n_repeat(); }

  [[nodiscard]] const KernelRule& rule() const noexcept { return *rule_; }

 private:
  std::shared_ptr<KernelRule> rule_;
};

}  // namespace contextune::intercept
