#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <contextune/export.hpp>
#include <contextune/value.hpp>

namespace contextune {

/// A value for each parameter, in the order in which the parameters were declared. A value type;
/// const use from several threads is safe.
class CONTEXTUNE_EXPORT Config {
 public:
  using Entry = std::pair<std::string, Value>;

  Config() = default;
  Config(std::initializer_list<Entry> entries);

  /// Sets a parameter; a new one goes to the end.
  Config& set(std::string name, Value value);

  /// The parameter's value, or null if the config has no such parameter.
  [[nodiscard]] const Value* find(std::string_view name) const noexcept;

  /// @throws Error if the parameter is absent or of another type; the message names both.
  [[nodiscard]] std::int64_t get_int(std::string_view name) const;
  /// An integer is a double too. @throws Error as get_int
  [[nodiscard]] double get_double(std::string_view name) const;
  /// @throws Error as get_int
  [[nodiscard]] bool get_bool(std::string_view name) const;
  /// @throws Error as get_int
  [[nodiscard]] const std::string& get_string(std::string_view name) const;

  [[nodiscard]] const std::vector<Entry>& entries() const noexcept { return entries_; }
  [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }

  /// "block=256 per_sm=4"; "default" for the empty config.
  [[nodiscard]] std::string to_string() const;

  /// Same names and values; the order does not matter.
  [[nodiscard]] bool operator==(const Config& other) const;

 private:
  [[nodiscard]] const Value& at(std::string_view name) const;
  std::vector<Entry> entries_;
};

}  // namespace contextune
