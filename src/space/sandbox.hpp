#pragma once

#include "space/lua_state.hpp"

namespace contextune::space {

/// Makes what a space file can name: arithmetic, text and table functions whose every call ends
/// soon, gives the same result in every process, and reaches nothing outside the file. Leaves on
/// the stack the table of visible names, to which more may be added. Raises Lua errors.
void push_visible_names(lua_State* lua);

/// Pushes the environment that shows the visible names (at `index`) to a chunk. Unknown names are
/// errors; new ones may be given only until `seal_environment`.
void push_environment(lua_State* lua, int index);

/// From now on a function of the file that assigns a global raises an error.
void seal_environment(lua_State* lua);

}  // namespace contextune::space
