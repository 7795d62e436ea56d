// The object `launch` of a space file: reads are noted, writes are checked and collected.
#include <array>
#include <cstdint>
#include <new>
#include <string>
#include <string_view>

#include "space/launch_parts.hpp"

namespace contextune::space {
namespace {

constexpr std::array<std::string_view, 10> launch_fields = {
    "args",   "grid",   "block",  "cluster", "shared_bytes",
    "kernel", "module", "source", "defines", "options"};

int read_launch(lua_State* lua) {
  const LaunchView& launch = launch_of(lua);
  Scene& scene = scene_of(lua);
  const LaunchEdit& edit = scene.edit;
  const std::string_view name =
      lua_type(lua, 2) == LUA_TSTRING ? lua_tostring(lua, 2) : std::string_view();
  const auto push_text = [lua](std::string_view text) {
    lua_pushlstring(lua, text.data(), text.size());
    return 1;
  };
  const auto push_part = [lua](LaunchPart part) {
    lua_getiuservalue(lua, 1, static_cast<int>(part));
    return 1;
  };
  if (name == "grid") return push_part(LaunchPart::Grid);
  if (name == "block") return push_part(LaunchPart::Block);
  if (name == "cluster") return push_part(LaunchPart::Cluster);
  if (name == "args") return push_part(LaunchPart::Arguments);
  if (name == "kernel") return push_text(edit.function.empty() ? scene.kernel : edit.function);
  if (name == "module" || name == "source") {
    const std::string& written = name == "module" ? edit.module : edit.source;
    if (written.empty()) return lua_pushnil(lua), 1;
    return push_text(written);
  }
  if (name == "shared_bytes") {
    if (!edit.shared_bytes) scene.reads.shape = true;
    lua_pushinteger(lua, edit.shared_bytes.value_or(launch.shared_bytes));
    return 1;
  }
  if (name == "defines" || name == "options") {
    return luaL_error(lua, "launch.%s cannot be read; keep it in a local", name.data());
  }
  return raise_unknown(lua, "launch", 2, launch_fields);
}

/// Copies a text out of Lua; false: no memory.
bool copy_text(std::string& to, std::string_view from) noexcept {
  try {
    to.assign(from);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

bool is_identifier(std::string_view name) {
  constexpr std::string_view letters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
  return !name.empty() && (name[0] < '0' || name[0] > '9') &&
         name.find_first_not_of(letters) == std::string_view::npos;
}

/// launch.defines = { TILE = 32, FAST = true, TYPE = "float" }
void write_defines(lua_State* lua) {
  if (!lua_istable(lua, 3)) {
    luaL_error(lua, "launch.defines was given a %s; give it a table, as in { TILE = 32 }",
               luaL_typename(lua, 3));
  }
  auto& defines = scene_of(lua).edit.defines;
  defines.clear();
  for (lua_pushnil(lua); lua_next(lua, 3) != 0; lua_pop(lua, 1)) {
    if (lua_type(lua, -2) != LUA_TSTRING || !is_identifier(lua_tostring(lua, -2))) {
      luaL_error(lua, "launch.defines wants macro names as keys, as in { TILE = 32 }");
    }
    const int type = lua_type(lua, -1);
    if (type != LUA_TNUMBER && type != LUA_TSTRING && type != LUA_TBOOLEAN) {
      luaL_error(lua, "launch.defines.%s was given a %s; give it a number, a text or a boolean",
                 lua_tostring(lua, -2), luaL_typename(lua, -1));
    }
    std::string_view value = lua_toboolean(lua, -1) != 0 ? "1" : "0";
    if (type != LUA_TBOOLEAN) {
      lua_pushvalue(lua, -1);  // a number must stay a number under lua_next
      std::size_t length = 0;
      const char* const text = lua_tolstring(lua, -1, &length);
      value = {text, length};
    }
    bool copied = true;
    try {
      defines.emplace_back(lua_tostring(lua, type == LUA_TBOOLEAN ? -2 : -3), value);
    } catch (const std::bad_alloc&) {
      copied = false;
    }
    if (!copied || value.find('\0') != std::string_view::npos) {
      luaL_error(lua, "launch.defines: a value is too long or holds a NUL byte");
    }
    if (type != LUA_TBOOLEAN) lua_pop(lua, 1);
  }
}

/// launch.options = { "--use_fast_math" }
void write_options(lua_State* lua) {
  if (!lua_istable(lua, 3)) {
    luaL_error(lua, "launch.options was given a %s; give it a list of texts",
               luaL_typename(lua, 3));
  }
  auto& options = scene_of(lua).edit.options;
  options.clear();
  const auto count = static_cast<lua_Integer>(lua_rawlen(lua, 3));
  for (lua_Integer i = 1; i <= count; ++i) {
    lua_rawgeti(lua, 3, i);
    const std::string_view option = text_given(lua, lua_gettop(lua), "launch.options");
    if (!option.starts_with('-')) {
      luaL_error(lua, "launch.options: '%s' is no option; an option starts with '-'",
                 option.data());
    }
    bool copied = true;
    try {
      options.emplace_back(option);
    } catch (const std::bad_alloc&) {
      copied = false;
    }
    if (!copied) luaL_error(lua, "not enough memory");
    lua_pop(lua, 1);
  }
}

int write_launch(lua_State* lua) {
  check_writable(lua);
  LaunchEdit& edit = scene_of(lua).edit;
  const std::string_view name =
      lua_type(lua, 2) == LUA_TSTRING ? lua_tostring(lua, 2) : std::string_view();
  if (name == "grid") return write_whole_extent(lua, LaunchPart::Grid, 3), 0;
  if (name == "block") return write_whole_extent(lua, LaunchPart::Block, 3), 0;
  if (name == "cluster") return write_whole_extent(lua, LaunchPart::Cluster, 3), 0;
  if (name == "args") return refuse_argument_write(lua);
  if (name == "shared_bytes") {
    edit.shared_bytes =
        static_cast<std::uint32_t>(whole_number_at(lua, 3, "launch.shared_bytes", 0, 0x7fffffff));
    edit.shared_line = LuaState::line(lua);
    return 0;
  }
  std::string* const text = name == "kernel"   ? &edit.function
                            : name == "module" ? &edit.module
                            : name == "source" ? &edit.source
                                               : nullptr;
  if (text != nullptr) {
    if (!copy_text(*text, text_given(lua, 3,
                                     name == "kernel"   ? "launch.kernel"
                                     : name == "module" ? "launch.module"
                                                        : "launch.source"))) {
      return luaL_error(lua, "not enough memory");
    }
  } else if (name == "defines") {
    write_defines(lua);
  } else if (name == "options") {
    write_options(lua);
  } else {
    return raise_unknown(lua, "launch", 2, launch_fields);
  }
  edit.code_line = LuaState::line(lua);
  return 0;
}

}  // namespace

void make_launch_object(lua_State* lua, Scene& scene) {
  push_object(lua, scene, "launch", 0, &read_launch, &write_launch);
  for (const LaunchPart part : {LaunchPart::Grid, LaunchPart::Block, LaunchPart::Cluster}) {
    push_extent_object(lua, scene, part);
    lua_setiuservalue(lua, -2, static_cast<int>(part));
  }
  push_arguments_object(lua, scene);
  lua_setiuservalue(lua, -2, static_cast<int>(LaunchPart::Arguments));
}

void check_writable(lua_State* lua) {
  static_cast<void>(launch_of(lua));
  if (!scene_of(lua).writable) {
    luaL_error(lua, "launch can be written only in apply; key and prune may just read it");
  }
}

lua_Integer whole_number_at(lua_State* lua, int index, const char* what, lua_Integer least,
                            lua_Integer most) {
  if (lua_type(lua, index) != LUA_TNUMBER) {
    return luaL_error(lua, "%s was given a %s; give it a whole number", what,
                      luaL_typename(lua, index));
  }
  int is_whole = 0;
  const lua_Integer value = lua_tointegerx(lua, index, &is_whole);
  if (is_whole == 0) {
    return luaL_error(lua, "%s = %f is not a whole number; use a // b or ceil_div(a, b)", what,
                      lua_tonumber(lua, index));
  }
  if (value < least || value > most) {
    return luaL_error(lua, "%s = %I is not within %I to %I; rule such a config out with prune",
                      what, static_cast<LUAI_UACINT>(value), static_cast<LUAI_UACINT>(least),
                      static_cast<LUAI_UACINT>(most));
  }
  return value;
}

std::string_view text_given(lua_State* lua, int index, const char* what) {
  if (lua_type(lua, index) != LUA_TSTRING) {
    luaL_error(lua, "%s was given a %s; give it a text", what, luaL_typename(lua, index));
  }
  std::size_t length = 0;
  const char* const text = lua_tolstring(lua, index, &length);
  const std::string_view view(text, length);
  if (view.empty() || view.size() > 4096 || view.find('\0') != std::string_view::npos) {
    luaL_error(lua, "%s was given a text that is empty, too long or holds a NUL byte", what);
  }
  return view;
}

}  // namespace contextune::space
