#include "space/key_result.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <contextune/value.hpp>

namespace contextune::space {
namespace {

constexpr std::size_t most_parts = 16;
constexpr std::size_t longest_text = 256;

Key::Part text_part(std::string_view text, int line) {
  const bool plain = std::ranges::all_of(
      text, [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; });
  if (!plain || text.size() > longest_text) {
    throw ScriptFault{line,
                      "returned a text that is too long or holds control characters; return "
                      "a short name, or numbers (string.unpack reads them from bytes)"};
  }
  return std::string(text);
}

Key::Part part_at(lua_State* lua, int index, int line) {
  switch (lua_type(lua, index)) {
    case LUA_TNUMBER: {
      int whole = 0;
      const lua_Integer integer = lua_tointegerx(lua, index, &whole);
      if (whole != 0) return static_cast<std::int64_t>(integer);
      const double number = lua_tonumber(lua, index);
      if (!std::isfinite(number)) {
        throw ScriptFault{line,
                          "returned a number that is infinite or none; check what it is "
                          "divided by"};
      }
      return to_string(Value(number));
    }
    case LUA_TBOOLEAN:
      return std::int64_t{lua_toboolean(lua, index) != 0 ? 1 : 0};
    case LUA_TSTRING: {
      std::size_t length = 0;
      const char* const text = lua_tolstring(lua, index, &length);
      return text_part({text, length}, line);
    }
    default:
      throw ScriptFault{line, std::string("returned a ") + luaL_typename(lua, index) +
                                  "; return a number, a text, or a table of these"};
  }
}

Key key_from_table(lua_State* lua, int index, int line) {
  std::vector<std::pair<std::string, Key::Part>> parts;
  for (lua_pushnil(lua); lua_next(lua, index) != 0; lua_pop(lua, 1)) {
    std::string name;
    if (lua_type(lua, -2) == LUA_TSTRING) {
      name = lua_tostring(lua, -2);
    } else if (lua_isinteger(lua, -2) != 0 && lua_tointeger(lua, -2) > 0 &&
               lua_tointeger(lua, -2) <= static_cast<lua_Integer>(most_parts)) {
      name = "key" + std::to_string(lua_tointeger(lua, -2));
    }
    const bool plain =
        !name.empty() && name.size() <= 64 &&
        std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
    if (!plain || parts.size() == most_parts) {
      throw ScriptFault{line, "returned a table with more than " + std::to_string(most_parts) +
                                  " entries, or with names that are not made of letters, digits "
                                  "and underscores; return few entries with plain names"};
    }
    parts.emplace_back(std::move(name), part_at(lua, lua_gettop(lua), line));
  }
  if (parts.empty()) {
    throw ScriptFault{line,
                      "returned an empty table; return what makes two launches the same "
                      "problem"};
  }
  // Lists with more than nine entries stay in order: shorter names first.
  const bool listed =
      std::ranges::all_of(parts, [](const auto& part) { return part.first.starts_with("key"); });
  std::ranges::sort(parts, [listed](const auto& a, const auto& b) {
    if (listed && a.first.size() != b.first.size()) return a.first.size() < b.first.size();
    return a.first < b.first;
  });
  Key key;
  for (auto& [name, part] : parts) key.add(name, std::move(part));
  return key;
}

}  // namespace

Key key_from_results(lua_State* lua, int first, int line) {
  const int last = lua_gettop(lua);
  if (last < first) {
    throw ScriptFault{line, "returned nothing; return what makes two launches the same problem"};
  }
  if (last == first && lua_istable(lua, first)) return key_from_table(lua, first, line);
  if (static_cast<std::size_t>(last - first) >= most_parts) {
    throw ScriptFault{line,
                      "returned more than " + std::to_string(most_parts) + " values; return fewer"};
  }
  Key key;
  for (int i = first; i <= last; ++i) {
    key.add(first == last ? "key" : "key" + std::to_string(i - first + 1), part_at(lua, i, line));
  }
  return key;
}

}  // namespace contextune::space
