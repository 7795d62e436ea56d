#pragma once

#include <string_view>

#include "space/script_objects.hpp"

namespace contextune::space {

/// The parts of the object `launch`, as the numbers of its user values.
enum class LaunchPart { Grid = 1, Block, Cluster, Arguments };

// Each pushes one part.
void push_extent_object(lua_State* lua, Scene& scene, LaunchPart part);
void push_arguments_object(lua_State* lua, Scene& scene);

/// launch.block = 256, { 32, 8 } or { x = 32, y = 8 }: dimensions left out are 1.
void write_whole_extent(lua_State* lua, LaunchPart part, int value_index);

// Checks; each raises a Lua error that says what was wrong and what to write instead.
void check_writable(lua_State* lua);
int refuse_argument_write(lua_State* lua);
[[nodiscard]] lua_Integer whole_number_at(lua_State* lua, int index, const char* what,
                                          lua_Integer least, lua_Integer most);
[[nodiscard]] std::string_view text_given(lua_State* lua, int index, const char* what);

}  // namespace contextune::space
