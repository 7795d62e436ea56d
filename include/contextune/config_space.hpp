#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <contextune/config.hpp>
#include <contextune/export.hpp>

namespace contextune {

/// All configs of one tunable: the product of its parameters, or an explicit list, less what a
/// constraint rules out. A value type, not thread-safe while it is being declared.
class CONTEXTUNE_EXPORT ConfigSpace {
 public:
  /// Keeps a config if true.
  using Constraint = std::function<bool(const Config&)>;

  /// Products beyond this are refused: they are never meant.
  static constexpr std::size_t max_configs = 1'000'000;

  ConfigSpace() = default;
  /// An explicit list; its first config is the default.
  explicit ConfigSpace(std::vector<Config> configs);

  /// Adds a factor to the product. The last declared parameter varies fastest.
  /// @throws Error if it has no values, or the name is taken
  ConfigSpace& parameter(std::string name, std::vector<Value> values);

  /// Adds a config beside the product.
  ConfigSpace& add(Config config);

  /// All constraints must hold. configs() passes on exceptions that a constraint throws.
  ConfigSpace& constraint(Constraint keep);

  /// Makes this config number 0, whether or not it was declared before.
  ConfigSpace& default_config(Config config);

  /// Dense, without repeats, in order of declaration; number 0 is the default: default_config(), or
  /// else the first that was declared and is kept.
  /// @throws Error if nothing is left, the default is ruled out, or the product is too large
  [[nodiscard]] std::vector<Config> configs() const;

  [[nodiscard]] bool empty() const noexcept { return parameters_.empty() && listed_.empty(); }

 private:
  struct Parameter {
    std::string name;
    std::vector<Value> values;
  };
  [[nodiscard]] bool keeps(const Config& config) const;

  std::vector<Parameter> parameters_;
  std::vector<Config> listed_;
  std::vector<Config> default_;  ///< none or one
  std::vector<Constraint> constraints_;
};

}  // namespace contextune
