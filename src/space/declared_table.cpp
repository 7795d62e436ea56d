#include "space/declared_table.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "space/nearest_name.hpp"

namespace contextune::space {
namespace {

constexpr std::size_t longest_name = 1024;
constexpr std::size_t most_parameters = 64;

[[noreturn]] void refuse(const std::string& what) {
  throw ScriptFault{0, what};
}

/// Restores the height of the stack, whatever happens.
class StackHeight {
 public:
  explicit StackHeight(lua_State* lua) : lua_(lua), top_(lua_gettop(lua)) {
    if (lua_checkstack(lua, 16) == 0) refuse("is nested too deeply; declare it in fewer levels");
  }
  StackHeight(const StackHeight&) = delete;
  StackHeight& operator=(const StackHeight&) = delete;
  ~StackHeight() { lua_settop(lua_, top_); }

 private:
  lua_State* lua_;
  int top_;
};

/// The length of a list; anything else than 1, 2, 3... as keys is refused.
std::size_t list_length(lua_State* lua, int index, const std::string& what, const char* example) {
  const int table = lua_absindex(lua, index);
  if (lua_type(lua, table) != LUA_TTABLE) {
    refuse(what + " is a " + luaL_typename(lua, table) + "; make it a list, as in " + example);
  }
  const StackHeight height(lua);
  const std::size_t length = lua_rawlen(lua, table);
  std::size_t count = 0;
  for (lua_pushnil(lua); lua_next(lua, table) != 0; lua_pop(lua, 1)) {
    const bool in_list = lua_isinteger(lua, -2) != 0 && lua_tointeger(lua, -2) >= 1 &&
                         static_cast<std::size_t>(lua_tointeger(lua, -2)) <= length;
    if (!in_list) refuse(what + " has named entries or gaps; make it a list, as in " + example);
    ++count;
  }
  if (count != length) refuse(what + " has gaps; make it a list without nil");
  return length;
}

/// Puts each entry of a list on top of the stack, and calls `take` with its name in messages.
/// @param entries what they are called, one and many: "value", "values"
/// @throws as refuse() does
template <typename Take>
void for_each(lua_State* lua, int index, const std::string& what, const char* example,
              std::pair<const char*, const char*> entries, bool may_be_empty, const Take& take) {
  const int table = lua_absindex(lua, index);
  const std::size_t length = list_length(lua, table, what, example);
  if (length == 0 && !may_be_empty)
    refuse(what + " is empty; give it at least one " + entries.first);
  if (length > max_configs)
    refuse(what + " has more than 10000 " + entries.second + "; give fewer");
  for (std::size_t i = 1; i <= length; ++i) {
    const StackHeight height(lua);
    lua_rawgeti(lua, table, static_cast<lua_Integer>(i));
    take(what + "[" + std::to_string(i) + "]");
  }
}

std::string checked_text(std::string_view text, const std::string& what) {
  const bool plain = std::ranges::all_of(
      text, [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; });
  if (text.empty() || text.size() > longest_name || !plain) {
    refuse(what + " is a text that is empty, too long or holds control characters; shorten it");
  }
  return std::string(text);
}

Value value_at(lua_State* lua, int index, const std::string& what) {
  switch (lua_type(lua, index)) {
    case LUA_TBOOLEAN:
      return Value(lua_toboolean(lua, index) != 0);
    case LUA_TSTRING:
      return Value(checked_text(text_at(lua, index), what));
    case LUA_TNUMBER:
      if (lua_isinteger(lua, index) != 0) {
        return Value(static_cast<std::int64_t>(lua_tointeger(lua, index)));
      }
      if (!std::isfinite(lua_tonumber(lua, index))) {
        refuse(what + " is infinite or not a number; give a finite one");
      }
      return Value(static_cast<double>(lua_tonumber(lua, index)));
    default:
      refuse(what + " is a " + luaL_typename(lua, index) +
             "; a parameter's value is a number, a text or a boolean");
  }
}

/// The names of a table's entries, in order; only names that can be written in a log are accepted.
std::vector<std::string> parameter_names(lua_State* lua, int index, const std::string& what) {
  const StackHeight height(lua);
  std::vector<std::string> names;
  for (lua_pushnil(lua); lua_next(lua, index) != 0; lua_pop(lua, 1)) {
    if (lua_type(lua, -2) != LUA_TSTRING) {
      refuse(what + " has an entry without a name; write it as in { block = ... }");
    }
    const std::string_view name = text_at(lua, -2);
    const bool plain = !name.empty() && name.size() <= 64 && (name[0] < '0' || name[0] > '9') &&
                       std::ranges::all_of(name, [](char c) {
                         return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                                (c >= '0' && c <= '9') || c == '_';
                       });
    if (!plain) {
      refuse(what + " names a parameter '" + std::string(name.substr(0, 64)) +
             "'; use letters, digits and underscores, at most 64");
    }
    names.emplace_back(name);
    if (names.size() > most_parameters) {
      refuse(what + " names more than " + std::to_string(most_parameters) +
             " parameters; give fewer");
    }
  }
  if (names.empty()) refuse(what + " names no parameter; write it as in { block = ... }");
  std::ranges::sort(names);
  return names;
}

/// Pushes a named entry; reads without a key of our own, which would have to be allocated.
bool push_entry(lua_State* lua, int index, std::string_view name) {
  const int table = lua_absindex(lua, index);
  for (lua_pushnil(lua); lua_next(lua, table) != 0; lua_pop(lua, 1)) {
    if (lua_type(lua, -2) == LUA_TSTRING && text_at(lua, -2) == name) {
      lua_remove(lua, -2);
      return true;
    }
  }
  return false;
}

std::vector<Value> values_at(lua_State* lua, int index, const std::string& what) {
  const int table = lua_absindex(lua, index);
  std::vector<Value> values;
  std::set<std::string> seen;
  for_each(lua, table, what, "{64, 128, 256}", {"value", "values"}, false,
           [&](const std::string& entry) {
             values.push_back(value_at(lua, -1, entry));
             if (!seen.insert(to_string(values.back())).second)
               refuse(what + " lists " + to_string(values.back()) + " twice; take one away");
           });
  return values;
}

}  // namespace

DeclaredTable::DeclaredTable(lua_State* lua, int index)
    : lua_(lua), index_(lua_absindex(lua, index)) {}

bool DeclaredTable::push(std::string_view name) const {
  return push_entry(lua_, index_, name);
}

void DeclaredTable::check_keys(std::span<const std::string_view> known) const {
  const StackHeight height(lua_);
  std::vector<std::string> unknown;
  for (lua_pushnil(lua_); lua_next(lua_, index_) != 0; lua_pop(lua_, 1)) {
    if (lua_type(lua_, -2) != LUA_TSTRING) {
      refuse("has an entry without a name; name it, as in space = { ... }");
    }
    const std::string_view name = text_at(lua_, -2);
    if (std::ranges::find(known, name) == known.end()) unknown.emplace_back(name);
  }
  if (unknown.empty()) return;
  const std::string& first = *std::ranges::min_element(unknown);
  refuse("'" + first.substr(0, 64) + "' is not known here" + suggestion(first, known));
}

bool DeclaredTable::has(std::string_view name) const {
  const StackHeight height(lua_);
  return push(name);
}

bool DeclaredTable::has_function(std::string_view name) const {
  const StackHeight height(lua_);
  if (!push(name)) return false;
  if (lua_type(lua_, -1) != LUA_TFUNCTION) {
    refuse(std::string(name) + " is a " + luaL_typename(lua_, -1) + "; make it a function, as in " +
           std::string(name) + " = function(...) ... end");
  }
  return true;
}

bool DeclaredTable::flag(std::string_view name) const {
  const StackHeight height(lua_);
  if (!push(name)) return false;
  if (lua_type(lua_, -1) != LUA_TBOOLEAN) {
    refuse(std::string(name) + " is a " + luaL_typename(lua_, -1) + "; make it true or false");
  }
  return lua_toboolean(lua_, -1) != 0;
}

std::optional<int> DeclaredTable::integer(std::string_view name, int least, int most) const {
  const StackHeight height(lua_);
  if (!push(name)) return std::nullopt;
  int whole = 0;
  const lua_Integer value =
      lua_type(lua_, -1) == LUA_TNUMBER ? lua_tointegerx(lua_, -1, &whole) : 0;
  if (whole == 0 || value < least || value > most) {
    refuse(std::string(name) + " must be a whole number from " + std::to_string(least) + " to " +
           std::to_string(most) + "; correct it");
  }
  return static_cast<int>(value);
}

std::optional<std::string> DeclaredTable::text(std::string_view name) const {
  const StackHeight height(lua_);
  if (!push(name)) return std::nullopt;
  if (lua_type(lua_, -1) != LUA_TSTRING) {
    refuse(std::string(name) + " is a " + luaL_typename(lua_, -1) + "; give it a text");
  }
  return checked_text(text_at(lua_, -1), std::string(name));
}

std::vector<std::string> DeclaredTable::texts(std::string_view name, bool may_be_empty) const {
  const StackHeight height(lua_);
  std::vector<std::string> result;
  if (!push(name)) return result;
  const std::string what(name);
  for_each(lua_, -1, what, "{ \"a\", \"b\" }", {"entry", "entries"}, may_be_empty,
           [&](const std::string& entry) {
             if (lua_type(lua_, -1) != LUA_TSTRING)
               refuse(entry + " is a " + luaL_typename(lua_, -1) + "; give it a text");
             result.push_back(checked_text(text_at(lua_, -1), entry));
           });
  return result;
}

std::vector<std::int64_t> DeclaredTable::ascending(std::string_view name) const {
  const StackHeight height(lua_);
  std::vector<std::int64_t> result;
  if (!push(name) || lua_type(lua_, -1) != LUA_TTABLE) return result;
  const std::string what(name);
  for_each(
      lua_, -1, what, "{4096, 65536}", {"number", "entries"}, false, [&](const std::string& entry) {
        int whole = 0;
        const lua_Integer value =
            lua_type(lua_, -1) == LUA_TNUMBER ? lua_tointegerx(lua_, -1, &whole) : 0;
        if (whole == 0 || value < 1)
          refuse(entry + " must be a whole number of at least 1; correct it");
        if (!result.empty() && value <= result.back())
          refuse(entry + " = " + std::to_string(value) + " is not larger than the entry before it");
        result.push_back(value);
      });
  return result;
}

std::vector<Config> DeclaredTable::configs() const {
  const bool has_space = has("space");
  if (has_space && has("configs")) refuse("has both space and configs; keep one of them");
  if (has_space) return product();
  return has("configs") ? list() : std::vector<Config>();
}

std::vector<Config> DeclaredTable::product() const {
  const StackHeight height(lua_);
  (void)push("space");
  if (lua_type(lua_, -1) != LUA_TTABLE) {
    refuse(std::string("space is a ") + luaL_typename(lua_, -1) +
           "; make it a table, as in { block = {64, 128} }");
  }
  const int space = lua_gettop(lua_);
  std::vector<Config> configs{Config()};
  for (const std::string& name : parameter_names(lua_, space, "space")) {
    const StackHeight entry_height(lua_);
    push_entry(lua_, space, name);
    const std::vector<Value> values = values_at(lua_, -1, "space." + name);
    if (configs.size() * values.size() > max_configs) {
      refuse("space gives more than " + std::to_string(max_configs) +
             " configs; give fewer values, or list the configs with configs = { ... }");
    }
    std::vector<Config> longer;
    longer.reserve(configs.size() * values.size());
    for (const Config& config : configs) {
      for (const Value& value : values) longer.push_back(Config(config).set(name, value));
    }
    configs = std::move(longer);
  }
  return configs;
}

std::vector<Config> DeclaredTable::list() const {
  const StackHeight height(lua_);
  (void)push("configs");
  const std::size_t length =
      list_length(lua_, -1, "configs", "{ { block = 64 }, { block = 128 } }");
  if (length == 0) refuse("configs is empty; give it at least one config");
  if (length > max_configs) refuse("configs has more than 10000 entries; give fewer");
  const int table = lua_gettop(lua_);
  std::vector<Config> configs;
  std::vector<std::string> expected;
  std::set<std::string> seen;
  for (std::size_t i = 1; i <= length; ++i) {
    const StackHeight entry_height(lua_);
    const std::string what = "configs[" + std::to_string(i) + "]";
    lua_rawgeti(lua_, table, static_cast<lua_Integer>(i));
    const int entry = lua_gettop(lua_);
    if (lua_type(lua_, entry) != LUA_TTABLE) {
      refuse(what + " is a " + luaL_typename(lua_, entry) + "; make it a table of parameters");
    }
    const std::vector<std::string> names = parameter_names(lua_, entry, what);
    if (i == 1) expected = names;
    if (names != expected) {
      refuse(what + " has other parameters than configs[1]; give every config the same ones");
    }
    Config config;
    for (const std::string& name : names) {
      push_entry(lua_, entry, name);
      config.set(name, value_at(lua_, -1, what + "." + name));
      lua_pop(lua_, 1);
    }
    if (!seen.insert(config.to_string()).second) {
      refuse(what + " is listed twice (" + config.to_string() + "); take one away");
    }
    configs.push_back(std::move(config));
  }
  return configs;
}

}  // namespace contextune::space
