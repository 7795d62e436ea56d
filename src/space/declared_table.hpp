#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <contextune/config.hpp>
#include <contextune/value.hpp>

#include "space/lua_state.hpp"

namespace contextune::space {

/// Most configs of one declaration: all are tried in turn, each several times.
inline constexpr std::size_t max_configs = 10'000;

/// The table of one declaration, read without running anything of the script and without changing
/// it. Every function throws ScriptFault, with no line, for what cannot be used.
class DeclaredTable {
 public:
  /// The table at `index` of the stack, which must stay there.
  DeclaredTable(lua_State* lua, int index);

  /// Refuses keys that are not in `known`.
  void check_keys(std::span<const std::string_view> known) const;

  [[nodiscard]] bool has(std::string_view name) const;

  /// Whether the value is a function; another kind of value is refused.
  [[nodiscard]] bool has_function(std::string_view name) const;

  [[nodiscard]] bool flag(std::string_view name) const;  ///< false if absent
  [[nodiscard]] std::optional<int> integer(std::string_view name, int least, int most) const;
  [[nodiscard]] std::optional<std::string> text(std::string_view name) const;

  /// A list of texts; empty if absent. An empty list is refused unless `may_be_empty`.
  [[nodiscard]] std::vector<std::string> texts(std::string_view name, bool may_be_empty) const;

  /// A list of whole numbers of at least 1, each larger than the one before. Empty if absent or no
  /// list at all; an empty list is refused.
  [[nodiscard]] std::vector<std::int64_t> ascending(std::string_view name) const;

  /// The configs of `space` (all combinations; the parameters by name, the first varies slowest) or
  /// of `configs` (as listed). Empty if neither is there.
  [[nodiscard]] std::vector<Config> configs() const;

 private:
  /// Pushes the value and returns true, or pushes nothing.
  [[nodiscard]] bool push(std::string_view name) const;
  [[nodiscard]] std::vector<Config> product() const;
  [[nodiscard]] std::vector<Config> list() const;

  lua_State* lua_;
  int index_;
};

}  // namespace contextune::space
