#include "space/sandbox.hpp"

#include <array>
#include <cstdio>
#include <cstring>
#include <string_view>

extern "C" {
#include <lualib.h>
}

#include "space/nearest_name.hpp"

namespace contextune::space {
namespace {

char sealed_key;  // its address names a slot of the registry

/// Charges the size of what it is given, then does what its upvalue does.
int charged(lua_State* lua) {
  std::int64_t steps = 0;
  const int count = lua_gettop(lua);
  for (int i = 1; i <= count; ++i) {
    const int type = lua_type(lua, i);
    if (type == LUA_TSTRING) steps += static_cast<std::int64_t>(lua_rawlen(lua, i) / 16);
    if (type == LUA_TTABLE) steps += static_cast<std::int64_t>(lua_rawlen(lua, i));
  }
  LuaState::of(lua).charge(steps * lua_tointeger(lua, lua_upvalueindex(2)));
  return lua_tocfunction(lua, lua_upvalueindex(1))(lua);
}

/// The same for a function that calls the script back.
int calls_back(lua_State* lua) {
  LuaState& state = LuaState::of(lua);
  state.enter_callback();
  const int results = charged(lua);
  state.leave_callback();
  return results;
}

/// Stands for a function that is left out, and tells why.
int left_out(lua_State* lua) {
  return luaL_error(lua, "%s is not available in a space file; %s",
                    lua_tostring(lua, lua_upvalueindex(1)), lua_tostring(lua, lua_upvalueindex(2)));
}

/// Repeating an empty text would run through its count for nothing.
int repeat_text(lua_State* lua) {
  std::size_t length = 0;
  std::size_t separator_length = 0;
  luaL_checklstring(lua, 1, &length);
  luaL_optlstring(lua, 3, "", &separator_length);
  if (length + separator_length == 0) {
    lua_pushliteral(lua, "");
    return 1;
  }
  return lua_tocfunction(lua, lua_upvalueindex(1))(lua);
}

/// Whether a format has a conversion %p.
bool shows_address(const char* format) {
  while ((format = std::strchr(format, '%')) != nullptr) {
    ++format;
    format += std::strspn(format, "-+ #0123456789.");
    if (*format == 'p') return true;
    if (*format != '\0') ++format;
  }
  return false;
}

/// Addresses differ from process to process, and so would what is made from them.
int format_text(lua_State* lua) {
  const int count = lua_gettop(lua);
  for (int i = 2; i <= count; ++i) {
    const int type = lua_type(lua, i);
    if (type != LUA_TSTRING && type != LUA_TNUMBER && type != LUA_TBOOLEAN && type != LUA_TNIL) {
      return luaL_error(lua, "string.format was given a %s; give it texts, numbers and booleans",
                        luaL_typename(lua, i));
    }
  }
  if (shows_address(luaL_checkstring(lua, 1))) {
    return luaL_error(lua, "string.format knows no %%p in a space file; use %%s or %%d");
  }
  return charged(lua);
}

/// Patterns can run without end in one step: plain text only.
int find_text(lua_State* lua) {
  std::size_t length = 0;
  std::size_t wanted_length = 0;
  const char* const text = luaL_checklstring(lua, 1, &length);
  const char* const wanted = luaL_checklstring(lua, 2, &wanted_length);
  const std::string_view wanted_view(wanted, wanted_length);
  if (lua_toboolean(lua, 4) == 0 &&
      wanted_view.find_first_of("^$*+?.([%-") != std::string_view::npos) {
    return luaL_error(lua,
                      "string.find takes no patterns in a space file; for plain text write "
                      "string.find(s, text, 1, true)");
  }
  lua_Integer start = luaL_optinteger(lua, 3, 1);
  const auto signed_length = static_cast<lua_Integer>(length);
  if (start < 0) start = start < -signed_length ? 1 : signed_length + start + 1;
  if (start == 0) start = 1;
  if (start > signed_length + 1) {
    lua_pushnil(lua);
    return 1;
  }
  LuaState::of(lua).charge(static_cast<std::int64_t>((length / 64 + 1) * (wanted_length / 64 + 1)));
  const std::size_t at =
      std::string_view(text, length).find(wanted_view, static_cast<std::size_t>(start - 1));
  if (at == std::string_view::npos) {
    lua_pushnil(lua);
    return 1;
  }
  lua_pushinteger(lua, static_cast<lua_Integer>(at + 1));
  lua_pushinteger(lua, static_cast<lua_Integer>(at + wanted_length));
  return 2;
}

int to_text(lua_State* lua) {
  luaL_checkany(lua, 1);
  switch (lua_type(lua, 1)) {
    case LUA_TSTRING:
    case LUA_TNUMBER:
    case LUA_TBOOLEAN:
    case LUA_TNIL:
      luaL_tolstring(lua, 1, nullptr);
      break;
    default:
      lua_pushstring(lua, luaL_typename(lua, 1));
  }
  return 1;
}

int ceil_div(lua_State* lua) {
  const lua_Integer count = luaL_checkinteger(lua, 1);
  const lua_Integer size = luaL_checkinteger(lua, 2);
  luaL_argcheck(lua, size > 0, 2, "must be positive");
  lua_pushinteger(lua, count / size + (count % size > 0 ? 1 : 0));
  return 1;
}

/// Lua's own order of keys differs from process to process; ranks must agree.
constexpr const char* ordered_pairs = R"(
local next, sort, type, error = ...
local function before(a, b)
  local kind_a, kind_b = type(a), type(b)
  if kind_a ~= kind_b then return kind_a < kind_b end
  return a < b
end
return function(t)
  if type(t) ~= "table" then
    error("pairs was given a " .. type(t) .. "; give it a table", 2)
  end
  local keys, count = {}, 0
  for key in next, t do
    if type(key) ~= "number" and type(key) ~= "string" then
      error("pairs goes over numbers and texts as keys, not over a " .. type(key), 2)
    end
    count = count + 1
    keys[count] = key
  end
  sort(keys, before)
  local at = 0
  return function()
    at = at + 1
    local key = keys[at]
    if key ~= nil then return key, t[key] end
  end
end
)";

/// Replaces function `name` of the table at the top by one that charges before it.
void charge_for(lua_State* lua, const char* name, lua_CFunction wrapper, int factor) {
  lua_getfield(lua, -1, name);
  lua_pushinteger(lua, factor);
  lua_pushcclosure(lua, wrapper, 2);
  lua_setfield(lua, -2, name);
}

/// Replaces function `name` of the table at the top by an error that says what else to do.
void leave_out(lua_State* lua, const char* shown, const char* name, const char* remedy) {
  lua_pushstring(lua, shown);
  lua_pushstring(lua, remedy);
  lua_pushcclosure(lua, &left_out, 2);
  lua_setfield(lua, -2, name);
}

void push_string_library(lua_State* lua) {
  luaL_requiref(lua, "string", luaopen_string, 0);
  charge_for(lua, "rep", &repeat_text, 0);
  charge_for(lua, "format", &format_text, 1);
  for (const char* name : {"byte", "lower", "upper", "reverse", "pack", "unpack", "packsize"}) {
    charge_for(lua, name, &charged, 1);
  }
  lua_pushcfunction(lua, &find_text);
  lua_setfield(lua, -2, "find");
  constexpr const char* no_patterns =
      "a pattern can run without end: use string.find(s, text, 1, true) and string.sub";
  leave_out(lua, "string.match", "match", no_patterns);
  leave_out(lua, "string.gmatch", "gmatch", no_patterns);
  leave_out(lua, "string.gsub", "gsub", no_patterns);
  leave_out(lua, "string.dump", "dump", "functions cannot be stored");
}

void push_table_library(lua_State* lua) {
  luaL_requiref(lua, "table", luaopen_table, 0);
  for (const char* name : {"insert", "remove", "concat", "unpack"}) {
    charge_for(lua, name, &charged, 1);
  }
  charge_for(lua, "sort", &calls_back, 20);
  leave_out(lua, "table.move", "move", "copy with a loop");
}

void push_math_library(lua_State* lua) {
  luaL_requiref(lua, "math", luaopen_math, 0);
  leave_out(lua, "math.random", "random", "every process must come to the same result");
  leave_out(lua, "math.randomseed", "randomseed", "every process must come to the same result");
}

/// Leaves the function on the stack.
void push_ordered_pairs(lua_State* lua, int visible) {
  if (luaL_loadbufferx(lua, ordered_pairs, std::strlen(ordered_pairs), "=contextune", "t") !=
      LUA_OK) {
    lua_error(lua);
  }
  lua_getglobal(lua, "next");
  lua_getfield(lua, visible, "table");
  lua_getfield(lua, -1, "sort");
  lua_remove(lua, -2);
  lua_getglobal(lua, "type");
  lua_getglobal(lua, "error");
  lua_call(lua, 4, 1);
}

constexpr std::array<std::string_view, 16> shown_names = {
    "kernel", "collective", "choice", "device",   "ceil_div", "math",     "string", "table",
    "ipairs", "pairs",      "type",   "tostring", "select",   "tonumber", "error",  "assert"};

constexpr std::array<std::string_view, 24> known_elsewhere = {
    "io",           "os",           "package", "debug",  "load",     "loadfile",
    "loadstring",   "dofile",       "require", "print",  "pcall",    "xpcall",
    "setmetatable", "getmetatable", "rawget",  "rawset", "rawequal", "rawlen",
    "next",         "coroutine",    "utf8",    "_G",     "warn",     "collectgarbage"};

int read_global(lua_State* lua) {
  lua_pushvalue(lua, 2);
  if (lua_rawget(lua, lua_upvalueindex(1)) != LUA_TNIL) return 1;
  if (lua_type(lua, 2) != LUA_TSTRING) return luaL_error(lua, "a global's name must be a text");
  const char* const name = lua_tostring(lua, 2);
  for (const std::string_view known : known_elsewhere) {
    if (known == name) {
      return luaL_error(lua,
                        "'%s' is not available in a space file: it reaches nothing outside of "
                        "itself, and its functions always end; do without it",
                        name);
    }
  }
  const std::string_view nearest = nearest_name(name, shown_names);
  if (nearest.empty()) {
    return luaL_error(lua, "'%s' has no value here; define it above with: local %s = ...", name,
                      name);
  }
  std::array<char, 64> shown{};
  std::snprintf(shown.data(), shown.size(), "%.*s", static_cast<int>(nearest.size()),
                nearest.data());
  return luaL_error(lua, "'%s' has no value here; did you mean '%s'?", name, shown.data());
}

int write_global(lua_State* lua) {
  if (lua_rawgetp(lua, LUA_REGISTRYINDEX, &sealed_key) != LUA_TNIL) {
    return luaL_error(lua,
                      "a function assigns the global '%s', so its result would depend on earlier "
                      "calls; write: local %s = ...",
                      luaL_tolstring(lua, 2, nullptr), luaL_tolstring(lua, 2, nullptr));
  }
  lua_pushvalue(lua, 2);
  lua_pushvalue(lua, 3);
  lua_rawset(lua, lua_upvalueindex(1));
  return 0;
}

}  // namespace

void push_visible_names(lua_State* lua) {
  // Base functions go into the table of globals, which no chunk sees; some are taken from there.
  luaL_requiref(lua, "_G", luaopen_base, 1);
  lua_pop(lua, 1);
  lua_newtable(lua);
  const int visible = lua_gettop(lua);
  for (const char* name : {"assert", "error", "ipairs", "select", "type"}) {
    lua_getglobal(lua, name);
    lua_setfield(lua, visible, name);
  }
  lua_getglobal(lua, "tonumber");
  lua_pushinteger(lua, 1);
  lua_pushcclosure(lua, &charged, 2);
  lua_setfield(lua, visible, "tonumber");
  lua_pushcfunction(lua, &to_text);
  lua_setfield(lua, visible, "tostring");
  lua_pushcfunction(lua, &ceil_div);
  lua_setfield(lua, visible, "ceil_div");
  push_string_library(lua);
  lua_setfield(lua, visible, "string");
  push_math_library(lua);
  lua_setfield(lua, visible, "math");
  push_table_library(lua);
  lua_setfield(lua, visible, "table");
  push_ordered_pairs(lua, visible);
  lua_setfield(lua, visible, "pairs");
}

void push_environment(lua_State* lua, int index) {
  const int visible = lua_absindex(lua, index);
  lua_newtable(lua);
  lua_newtable(lua);
  lua_pushvalue(lua, visible);
  lua_pushcclosure(lua, &read_global, 1);
  lua_setfield(lua, -2, "__index");
  lua_pushvalue(lua, visible);
  lua_pushcclosure(lua, &write_global, 1);
  lua_setfield(lua, -2, "__newindex");
  lua_setmetatable(lua, -2);
}

void seal_environment(lua_State* lua) {
  lua_pushboolean(lua, 1);
  lua_rawsetp(lua, LUA_REGISTRYINDEX, &sealed_key);
}

}  // namespace contextune::space
