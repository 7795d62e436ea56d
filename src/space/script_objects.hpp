#pragma once

#include <span>
#include <string_view>

#include "space/lua_state.hpp"
#include "space/scene.hpp"

namespace contextune::space {

/// Makes the objects `launch`, `config` and `device` of a Lua state. They show what `scene` holds
/// at the time, note in it what is read of the launch, and collect in it what is written to it.
/// `scene` must outlive the state. Raises Lua errors.
void make_script_objects(lua_State* lua, Scene& scene);

// Each pushes one object; no allocation, no error.
void push_launch(lua_State* lua);
void push_config(lua_State* lua);
void push_device(lua_State* lua);

/// Makes `launch` and its parts; `make_script_objects` calls it. Leaves the object on the stack.
void make_launch_object(lua_State* lua, Scene& scene);

/// Pushes a userdata whose fields are read and written through two functions, which find the scene
/// as their first upvalue and `part` as their second.
void push_object(lua_State* lua, Scene& scene, const char* type_name, int part, lua_CFunction read,
                 lua_CFunction write, lua_CFunction length = nullptr);

[[nodiscard]] Scene& scene_of(lua_State* lua) noexcept;

/// Raises "TYPE has no NAME; did you mean 'OTHER'?".
int raise_unknown(lua_State* lua, const char* object, int name_index,
                  std::span<const std::string_view> known);

/// The launch of the call that runs. Raises an error if none does.
[[nodiscard]] const LaunchView& launch_of(lua_State* lua);

}  // namespace contextune::space
