#include "space/function_identity.hpp"

#include <bit>
#include <cstdint>
#include <map>
#include <string_view>

#include "core/value/hexadecimal.hpp"
#include "core/value/stable_hash.hpp"

namespace contextune::space {
namespace {

constexpr std::size_t most_objects = 10'000;
constexpr int most_depth = 64;
constexpr std::string_view environment_name = "_ENV";

/// Lines `first` to `last`, counted from 1.
std::string_view lines_of(std::string_view text, int first, int last) {
  std::size_t begin = 0;
  for (int line = 1; line < first && begin != text.npos; ++line) {
    begin = text.find('\n', begin);
    if (begin != text.npos) ++begin;
  }
  if (begin == text.npos) return {};
  std::size_t end = begin;
  for (int line = first; line <= last && end != text.npos; ++line) {
    end = text.find('\n', end);
    if (end != text.npos) ++end;
  }
  return text.substr(begin, end == text.npos ? end : end - begin);
}

/// Walks over values and what they hold. Lua errors jump out of it: it is owned outside of
/// LuaState::protect.
class Walk {
 public:
  explicit Walk(std::string_view text) : text_(text) {}

  /// The value at the top, which it takes away.
  std::uint64_t take(lua_State* lua) {
    const int type = lua_type(lua, -1);
    StableHash hash;
    hash.add(static_cast<std::uint64_t>(type + 1));
    if (type == LUA_TBOOLEAN) {
      hash.add(static_cast<std::uint64_t>(lua_toboolean(lua, -1)));
    } else if (type == LUA_TNUMBER) {
      hash.add(lua_isinteger(lua, -1) != 0
                   ? static_cast<std::uint64_t>(lua_tointegerx(lua, -1, nullptr))
                   : ~std::bit_cast<std::uint64_t>(lua_tonumberx(lua, -1, nullptr)));
    } else if (type == LUA_TSTRING) {
      hash.add(text_at(lua, -1));
    } else if ((type == LUA_TFUNCTION && lua_iscfunction(lua, -1) == 0) || type == LUA_TTABLE) {
      hash.add(object(lua, type));
    }
    lua_pop(lua, 1);
    return hash.value();
  }

 private:
  std::uint64_t object(lua_State* lua, int type) {
    const void* const address = lua_topointer(lua, -1);
    if (known_.size() >= most_objects || depth_ >= most_depth) return 0;
    const auto [place, fresh] = known_.emplace(address, 0);
    if (!fresh) return place->second;  // 0: it holds itself
    luaL_checkstack(lua, 8, "too many values");
    ++depth_;
    const std::uint64_t found = type == LUA_TTABLE ? table(lua) : function(lua);
    --depth_;
    return place->second = found;
  }

  std::uint64_t function(lua_State* lua) {
    lua_Debug where{};
    lua_pushvalue(lua, -1);
    lua_getinfo(lua, ">S", &where);
    StableHash hash;
    // Our own functions are the same in all files.
    if (std::string_view(where.source) != LuaState::chunk_name) return hash.value();
    hash.add(lines_of(text_, where.linedefined, where.lastlinedefined));
    for (int i = 1;; ++i) {
      const char* const name = lua_getupvalue(lua, -1, i);
      if (name == nullptr) break;
      hash.add(name == environment_name ? globals(lua) : take(lua));
    }
    return hash.value();
  }

  /// Its entries have no order.
  std::uint64_t table(lua_State* lua) {
    std::uint64_t sum = 0;
    lua_pushnil(lua);
    while (lua_next(lua, -2) != 0) {
      StableHash entry;
      entry.add(take(lua));
      lua_pushvalue(lua, -1);
      entry.add(take(lua));
      sum += entry.value();
    }
    return sum;
  }

  /// Hashes the environment at the top, which it takes away. Its metatable reads from a table that
  /// __index holds.
  std::uint64_t globals(lua_State* lua) {
    std::uint64_t found = 0;
    const int top = lua_gettop(lua);
    if (lua_getmetatable(lua, -1) != 0) {
      lua_pushliteral(lua, "__index");
      lua_rawget(lua, -2);
      if (lua_iscfunction(lua, -1) != 0 && lua_getupvalue(lua, -1, 1) != nullptr) found = take(lua);
    }
    lua_settop(lua, top - 1);
    return found;
  }

  const std::string_view text_;
  std::map<const void*, std::uint64_t> known_;
  int depth_ = 0;
};

}  // namespace

std::string function_identity(Script& script, const ScriptFunction& function) {
  if (!function) return {};
  Walk walk(script.text());
  std::uint64_t found = 0;
  try {
    script.state().protect([&](lua_State* lua) {
      lua_rawgeti(lua, LUA_REGISTRYINDEX, function.reference);
      found = walk.take(lua);
    });
  } catch (const ScriptFault&) {
    return {};  // no memory for a few places on the stack
  }
  return hexadecimal(found);
}

}  // namespace contextune::space
