#include "space/script.hpp"

#include <algorithm>

#include <contextune/error.hpp>

#include "space/device_dependent_error.hpp"
#include "space/file_text.hpp"
#include "space/kernel_name.hpp"
#include "space/sandbox.hpp"
#include "space/script_objects.hpp"

namespace contextune::space {
namespace {

constexpr lua_Integer most_declarations = 1000;
constexpr std::size_t most_configs_in_all = 100'000;

char declarations_key;  // its address names a slot of the registry

// A declaration is a list: kind, name, line, and the table once it has come.
enum Field { kind_field = 1, name_field, line_field, table_field };

/// The second half of: kernel "name" { ... }
int take_table(lua_State* lua) {
  const char* const kind = lua_tostring(lua, lua_upvalueindex(2));
  if (!lua_istable(lua, 1)) {
    return luaL_error(lua, "%s was given a %s after its name; write: %s \"name\" { ... }", kind,
                      luaL_typename(lua, 1), kind);
  }
  if (lua_rawgeti(lua, lua_upvalueindex(1), table_field) != LUA_TNIL) {
    return luaL_error(lua, "%s was given a second table; write a declaration of its own", kind);
  }
  lua_pushvalue(lua, 1);
  lua_rawseti(lua, lua_upvalueindex(1), table_field);
  return 0;
}

/// The first half: remembers name and line, and gives the function that takes the table.
int declare(lua_State* lua) {
  const char* const kind = lua_tostring(lua, lua_upvalueindex(1));
  if (lua_type(lua, 1) != LUA_TSTRING || lua_gettop(lua) != 1) {
    return luaL_error(lua, "%s wants a name and then a table; write: %s \"name\" { ... }", kind,
                      kind);
  }
  const std::size_t length = lua_rawlen(lua, 1);
  if (length == 0 || length > 4096) {
    return luaL_error(lua, "%s was given an empty or endless name; give the demangled name", kind);
  }
  if (lua_rawgetp(lua, LUA_REGISTRYINDEX, &declarations_key) != LUA_TTABLE) {
    return luaL_error(lua,
                      "%s can be declared only while the file is loaded; move it out of the "
                      "function",
                      kind);
  }
  const auto count = static_cast<lua_Integer>(lua_rawlen(lua, -1));
  if (count >= most_declarations) {
    return luaL_error(lua, "the file declares more than %d kernels; split it",
                      static_cast<int>(most_declarations));
  }
  lua_newtable(lua);
  lua_pushvalue(lua, lua_upvalueindex(1));
  lua_rawseti(lua, -2, kind_field);
  lua_pushvalue(lua, 1);
  lua_rawseti(lua, -2, name_field);
  lua_pushinteger(lua, LuaState::line(lua));
  lua_rawseti(lua, -2, line_field);
  lua_pushvalue(lua, -1);
  lua_rawseti(lua, -3, count + 1);
  lua_pushvalue(lua, lua_upvalueindex(1));
  lua_pushcclosure(lua, &take_table, 2);
  return 1;
}

void add_declarator(lua_State* lua, const char* kind) {
  lua_pushstring(lua, kind);
  lua_pushcclosure(lua, &declare, 1);
  lua_setfield(lua, -2, kind);
}

/// Hands a text out in pieces, so that reading it is bounded like running it: Lua's compiler counts
/// no instructions, and what it does with a long chain of `and` grows with the square of its
/// length.
struct Pieces {
  std::string_view rest;
  int line = 1;  // of the rest
};

const char* next_piece(lua_State* lua, void* of_file, std::size_t* bytes) {
  constexpr std::size_t most = 512;
  auto& pieces = *static_cast<Pieces*>(of_file);
  LuaState::of(lua).check_reading(pieces.line);
  const std::string_view piece = pieces.rest.substr(0, most);
  pieces.rest.remove_prefix(piece.size());
  pieces.line += static_cast<int>(std::count(piece.begin(), piece.end(), '\n'));
  *bytes = piece.size();
  return piece.data();
}

void push_chunk(lua_State* lua, std::string_view text) {
  Pieces pieces{text};
  const int status = lua_load(lua, &next_piece, &pieces, LuaState::chunk_name, "t");
  if (status == LUA_ERRMEM) luaL_error(lua, "needs too much memory to be read; split the file");
  if (status != LUA_OK) lua_error(lua);
}

/// Adds what Lua's own messages do not say.
std::string with_remedy(std::string_view text, int line) {
  if (text.find("C stack overflow") != std::string_view::npos) {
    return "is nested too deeply; write it in fewer levels";
  }
  std::string result(text);
  if (text.find("near 'function'") != std::string_view::npos) {
    result += "; 'function' is a word of Lua: write launch.kernel = \"name\" to choose another";
  } else if (text.find(';') == std::string_view::npos) {
    result += line > 0 ? "; correct this line" : "; correct the file";
  }
  return result;
}

}  // namespace

Script::Script(std::string_view text, std::string path, const DeviceFacts& device)
    : path_(std::move(path)) {
  scene_.device = device;
  text = text_ = check_text(text, path_);
  try {
    run(text);
  } catch (const ScriptFault& fault) {
    fail(fault.line, "", fault.text);
  }
  collect();
}

std::filesystem::path Script::folder() const {
  return std::filesystem::absolute(path_).parent_path();
}

std::string Script::place(int line) const {
  return line > 0 ? path_ + ":" + std::to_string(line) : path_;
}

void Script::fail(int line, std::string_view who, std::string_view text) const {
  std::string message = place(line) + ": ";
  if (!who.empty()) message += std::string(who) + ": ";
  message += with_remedy(text, line);
  if (scene_.device_was_read) throw DeviceDependentError(message);
  throw Error(message);
}

void Script::run(std::string_view text) {
  state_.protect([&](lua_State* lua) {
    make_script_objects(lua, scene_);
    push_visible_names(lua);
    push_device(lua);
    lua_setfield(lua, -2, "device");
    add_declarator(lua, "kernel");
    add_declarator(lua, "collective");
    add_declarator(lua, "choice");
    lua_newtable(lua);
    lua_rawsetp(lua, LUA_REGISTRYINDEX, &declarations_key);
    push_chunk(lua, text);
    push_environment(lua, -2);
    lua_setupvalue(lua, -2, 1);
    lua_call(lua, 0, 0);
    seal_environment(lua);
  });
}

void Script::collect() {
  std::vector<std::pair<std::string, int>> seen;
  lua_State* const lua = state_.interpreter();
  const int top = lua_gettop(lua);
  lua_rawgetp(lua, LUA_REGISTRYINDEX, &declarations_key);
  const auto count = static_cast<int>(lua_rawlen(lua, -1));
  try {
    for (int i = 1; i <= count; ++i) collect_one(i, seen);
  } catch (...) {
    lua_settop(lua, top);
    throw;
  }
  lua_settop(lua, top);
  state_.protect([](lua_State* state) {
    lua_pushnil(state);
    lua_rawsetp(state, LUA_REGISTRYINDEX, &declarations_key);
  });
}

void Script::collect_one(int index, std::vector<std::pair<std::string, int>>& seen) {
  // The list is at the top; reading it allocates nothing, so nothing here raises a Lua error.
  lua_State* const lua = state_.interpreter();
  const int list = lua_gettop(lua);
  lua_rawgeti(lua, list, index);
  const int entry = lua_gettop(lua);
  lua_rawgeti(lua, entry, kind_field);
  const std::string kind = lua_tostring(lua, -1);
  lua_rawgeti(lua, entry, name_field);
  std::size_t length = 0;
  const char* const raw_name = lua_tolstring(lua, -1, &length);
  std::string name(raw_name, length);
  lua_rawgeti(lua, entry, line_field);
  const int line = static_cast<int>(lua_tointeger(lua, -1));
  const std::string shown = printable(name, 200);
  const std::string who = kind + " '" + shown + "'";

  if (shown != name.substr(0, 200)) {
    fail(line, who, "the name holds control characters; copy it from what --discover shows");
  }
  const std::string identity = kind + " " + (kind == "kernel" ? normalised_name(name) : name);
  const auto same = std::find_if(seen.begin(), seen.end(),
                                 [&](const auto& other) { return other.first == identity; });
  if (same != seen.end()) {
    fail(line, who,
         "was declared in line " + std::to_string(same->second) + " already; merge the two");
  }
  seen.emplace_back(identity, line);

  if (lua_rawgeti(lua, entry, table_field) != LUA_TTABLE) {
    fail(line, who, "no table follows the name; write: " + kind + " \"name\" { ... }");
  }
  std::size_t configs = 0;
  for (const auto& other : kernels_) configs += other.configs.size();
  try {
    if (kind == "kernel") {
      KernelDeclaration kernel = read_kernel(lua, std::move(name), line);
      configs += kernel.configs.size();
      state_.protect([&](lua_State* state) {
        lua_rawgetp(state, LUA_REGISTRYINDEX, &declarations_key);
        lua_rawgeti(state, -1, index);
        lua_rawgeti(state, -1, table_field);
        bind_functions(state, kernel);
      });
      kernels_.push_back(std::move(kernel));
    } else if (kind == "choice") {
      choices_.push_back(read_choice(lua, std::move(name)));
      choices_.back().place = place(line);
    } else {
      collectives_.push_back(read_collective(lua, std::move(name)));
    }
  } catch (const ScriptFault& fault) {
    fail(fault.line > 0 ? fault.line : line, who, fault.text);
  }
  if (configs > most_configs_in_all) {
    fail(line, who,
         "the kernels of this file have more than " + std::to_string(most_configs_in_all) +
             " configs; give fewer");
  }
  lua_settop(lua, list);
}

}  // namespace contextune::space
