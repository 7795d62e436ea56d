#include <contextune/config_space.hpp>

#include <algorithm>
#include <cassert>
#include <unordered_set>
#include <utility>

#include <contextune/error.hpp>

namespace contextune {
namespace {

/// Keeps the first of equal configs. Configs of one space nearly always declare their parameters in
/// one order, so that the text tells them apart; the comparison is for those that do not.
class Distinct {
 public:
  void add(Config config) {
    if (!texts_.insert(config.to_string()).second) return;
    if (!configs_.empty() && !same_order(configs_.front(), config) &&
        std::ranges::find(configs_, config) != configs_.end()) {
      return;
    }
    configs_.push_back(std::move(config));
  }
  std::vector<Config> take() { return std::move(configs_); }

 private:
  static bool same_order(const Config& a, const Config& b) {
    return std::equal(a.entries().begin(), a.entries().end(), b.entries().begin(),
                      b.entries().end(),
                      [](const auto& x, const auto& y) { return x.first == y.first; });
  }
  std::unordered_set<std::string> texts_;
  std::vector<Config> configs_;
};

}  // namespace

ConfigSpace::ConfigSpace(std::vector<Config> configs) : listed_(std::move(configs)) {}

ConfigSpace& ConfigSpace::parameter(std::string name, std::vector<Value> values) {
  if (values.empty()) {
    throw Error("parameter '" + name + "' of a config space has no values; give it at least one");
  }
  for (const Parameter& parameter : parameters_) {
    if (parameter.name == name) {
      throw Error("parameter '" + name + "' of a config space is declared twice; rename one");
    }
  }
  parameters_.push_back({std::move(name), std::move(values)});
  return *this;
}

ConfigSpace& ConfigSpace::add(Config config) {
  listed_.push_back(std::move(config));
  return *this;
}

ConfigSpace& ConfigSpace::constraint(Constraint keep) {
  constraints_.push_back(std::move(keep));
  return *this;
}

ConfigSpace& ConfigSpace::default_config(Config config) {
  default_.clear();
  default_.push_back(std::move(config));
  return *this;
}

bool ConfigSpace::keeps(const Config& config) const {
  return std::ranges::all_of(constraints_, [&](const Constraint& keep) { return keep(config); });
}

std::vector<Config> ConfigSpace::configs() const {
  std::size_t product = parameters_.empty() ? 0 : 1;
  for (const Parameter& parameter : parameters_) {
    assert(product != 0);
    if (parameter.values.size() > max_configs / product) {
      throw Error("a config space has more than " + std::to_string(max_configs) +
                  " configs; declare fewer values, or list the configs");
    }
    product *= parameter.values.size();
  }
  Distinct distinct;
  if (!default_.empty()) {
    if (!keeps(default_.front())) {
      throw Error("the default config '" + default_.front().to_string() +
                  "' is ruled out by a constraint; change either");
    }
    distinct.add(default_.front());
  }
  for (std::size_t number = 0; number < product; ++number) {
    std::vector<const Value*> chosen(parameters_.size());
    std::size_t rest = number;
    for (std::size_t i = parameters_.size(); i-- > 0;) {
      const auto& values = parameters_[i].values;
      chosen[i] = &values[rest % values.size()];
      rest /= values.size();
    }
    Config config;
    for (std::size_t i = 0; i < chosen.size(); ++i) config.set(parameters_[i].name, *chosen[i]);
    if (keeps(config)) distinct.add(std::move(config));
  }
  for (const Config& config : listed_)
    if (keeps(config)) distinct.add(config);
  std::vector<Config> configs = distinct.take();
  if (configs.empty()) {
    throw Error(empty() ? "a config space has no configs; declare a parameter or a config"
                        : "a config space has no configs left: its constraints rule out all " +
                              std::to_string(product + listed_.size()));
  }
  return configs;
}

}  // namespace contextune
