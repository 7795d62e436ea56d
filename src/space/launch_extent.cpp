// launch.grid, launch.block and launch.cluster of a space file.
#include <array>
#include <cstddef>
#include <string_view>

#include "space/launch_parts.hpp"

namespace contextune::space {
namespace {

constexpr std::array<std::string_view, 3> dimensions = {"x", "y", "z"};

std::size_t index_of(LaunchPart part) {
  return static_cast<std::size_t>(part) - static_cast<std::size_t>(LaunchPart::Grid);
}

struct Limit {
  const char* object;
  std::array<std::uint32_t, 3> most;
};

const Limit& limit_of(LaunchPart part) {
  static constexpr std::array<Limit, 3> limits = {{{"launch.grid", {2147483647, 65535, 65535}},
                                                   {"launch.block", {1024, 1024, 64}},
                                                   {"launch.cluster", {16, 16, 16}}}};
  return limits[index_of(part)];
}

ExtentEdit& edit_of(Scene& scene, LaunchPart part) {
  if (part == LaunchPart::Grid) return scene.edit.grid;
  return part == LaunchPart::Block ? scene.edit.block : scene.edit.cluster;
}

LaunchPart part_of(lua_State* lua) {
  return static_cast<LaunchPart>(lua_tointeger(lua, lua_upvalueindex(2)));
}

/// The index of field "x", "y" or "z"; raises an error for any other.
std::size_t dimension_at(lua_State* lua, int index, const char* object) {
  if (lua_type(lua, index) == LUA_TSTRING) {
    const std::string_view name = lua_tostring(lua, index);
    for (std::size_t i = 0; i < dimensions.size(); ++i) {
      if (name == dimensions[i]) return i;
    }
  }
  raise_unknown(lua, object, index, dimensions);
  return 0;
}

const char* extent_name(LaunchPart part, std::size_t dimension) {
  static constexpr std::array<std::array<const char*, 3>, 3> names = {
      {{"launch.grid.x", "launch.grid.y", "launch.grid.z"},
       {"launch.block.x", "launch.block.y", "launch.block.z"},
       {"launch.cluster.x", "launch.cluster.y", "launch.cluster.z"}}};
  return names[index_of(part)][dimension];
}

int read_extent(lua_State* lua) {
  const LaunchView& launch = launch_of(lua);
  Scene& scene = scene_of(lua);
  const LaunchPart part = part_of(lua);
  const std::size_t dimension = dimension_at(lua, 2, limit_of(part).object);
  const ExtentEdit& edit = edit_of(scene, part);
  if (edit.written[dimension]) {
    lua_pushinteger(lua, edit.value[dimension]);
    return 1;
  }
  const auto& written = part == LaunchPart::Grid    ? launch.grid
                        : part == LaunchPart::Block ? launch.block
                                                    : launch.cluster;
  (part == LaunchPart::Grid    ? scene.reads.grid
   : part == LaunchPart::Block ? scene.reads.block
                               : scene.reads.shape) = true;
  lua_pushinteger(lua, written[dimension]);
  return 1;
}

void write_dimension(lua_State* lua, LaunchPart part, std::size_t dimension, int value_index) {
  const lua_Integer value = whole_number_at(lua, value_index, extent_name(part, dimension), 1,
                                            limit_of(part).most[dimension]);
  ExtentEdit& edit = edit_of(scene_of(lua), part);
  edit.value[dimension] = static_cast<std::uint32_t>(value);
  edit.written[dimension] = true;
  edit.line = LuaState::line(lua);
}

int write_extent(lua_State* lua) {
  check_writable(lua);
  const LaunchPart part = part_of(lua);
  write_dimension(lua, part, dimension_at(lua, 2, limit_of(part).object), 3);
  return 0;
}

}  // namespace

void write_whole_extent(lua_State* lua, LaunchPart part, int value_index) {
  edit_of(scene_of(lua), part).written = {};
  if (lua_type(lua, value_index) == LUA_TNUMBER) {
    write_dimension(lua, part, 0, value_index);
  } else if (lua_type(lua, value_index) == LUA_TTABLE) {
    for (lua_pushnil(lua); lua_next(lua, value_index) != 0; lua_pop(lua, 1)) {
      const bool by_number = lua_isinteger(lua, -2) != 0;
      const lua_Integer at = by_number ? lua_tointeger(lua, -2) : 0;
      if (by_number && (at < 1 || at > 3)) {
        luaL_error(lua, "%s has three dimensions, not %I; give { x, y, z }", limit_of(part).object,
                   static_cast<LUAI_UACINT>(at));
      }
      if (!by_number) dimension_at(lua, lua_gettop(lua) - 1, limit_of(part).object);
    }
    for (std::size_t i = 0; i < dimensions.size(); ++i) {
      lua_rawgeti(lua, value_index, static_cast<lua_Integer>(i + 1));
      if (lua_isnil(lua, -1)) {
        lua_pushlstring(lua, dimensions[i].data(), 1);
        lua_rawget(lua, value_index);
      }
      if (!lua_isnil(lua, -1)) write_dimension(lua, part, i, lua_gettop(lua));
    }
  } else {
    luaL_error(lua, "%s was given a %s; give it a number or { x, y, z }", limit_of(part).object,
               luaL_typename(lua, value_index));
  }
  ExtentEdit& edit = edit_of(scene_of(lua), part);
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    if (!edit.written[i]) edit.value[i] = 1;
  }
  edit.written = {true, true, true};
}

void push_extent_object(lua_State* lua, Scene& scene, LaunchPart part) {
  push_object(lua, scene, limit_of(part).object, static_cast<int>(part), &read_extent,
              &write_extent);
}

}  // namespace contextune::space
