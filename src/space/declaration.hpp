#pragma once

#include <optional>
#include <string>
#include <vector>

#include <contextune/buckets.hpp>
#include <contextune/config.hpp>

#include "core/value/kernel_rule.hpp"
#include "space/lua_state.hpp"

namespace contextune::space {

/// A function of a script, kept in its Lua state; LUA_NOREF: there is none.
struct ScriptFunction {
  int reference = LUA_NOREF;
  int line = 0;  ///< where it begins

  [[nodiscard]] explicit operator bool() const { return reference != LUA_NOREF; }
};

/// The parameter that `variants` adds to each config: the function to launch.
inline constexpr const char* variant_parameter = "variant";

/// kernel "name" { ... }
struct KernelDeclaration {
  std::string name;
  int line = 0;
  std::optional<std::vector<ArgumentType>> params;  ///< absent: from the demangled name
  std::vector<Config> configs;                      ///< variants included
  bool has_variants = false;
  ScriptFunction key;
  ScriptFunction size;  ///< of the problem, for `buckets`
  Buckets buckets;
  UnseenSize unseen = UnseenSize::Tune;
  ScriptFunction prune;
  ScriptFunction apply;
  bool co_resident = false;
  std::optional<int> n_warmup;
  std::optional<int> n_repeat;
};

/// collective "name" { ... }: configs for {algorithm, protocol, channels}. Checked, and kept as
/// data.
struct CollectiveDeclaration {
  std::string name;  ///< "all_gather", "all_reduce", "reduce_scatter", "broadcast" or "reduce"
  std::vector<Config> configs;
  std::string buckets;  ///< "pow2", "exact", upper edges in bytes as "4096,65536"; empty: not said
  std::optional<int> n_warmup;
  std::optional<int> n_repeat;
};

/// choice "name" { ... }: which implementations may run. Only the program knows what its names
/// mean.
struct ChoiceDeclaration {
  std::string name;
  std::string place;  ///< "file.lua:3"
  std::string pin;    ///< the only one that may; empty: not said
  std::vector<std::string> exclude;
};

// Each reads the table at the top of the stack, running nothing of the script. The functions of a
// kernel are only looked for: `bind_functions` keeps them.
// @throws ScriptFault without a line
[[nodiscard]] KernelDeclaration read_kernel(lua_State* lua, std::string name, int line);
[[nodiscard]] CollectiveDeclaration read_collective(lua_State* lua, std::string name);
[[nodiscard]] ChoiceDeclaration read_choice(lua_State* lua, std::string name);

/// Keeps the functions of the table at the top. Raises Lua errors.
void bind_functions(lua_State* lua, KernelDeclaration& declaration);

}  // namespace contextune::space
