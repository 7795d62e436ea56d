#pragma once

#include <contextune/key.hpp>

#include "space/lua_state.hpp"

namespace contextune::space {

/// The key that a function returned as the values from `first` to the top of the stack. They are
/// one number, text or boolean ("key=5"), several or a list of them ("key1=5 key2=f16"), or a table
/// with names ("k=8 n=5"). Booleans are 0 and 1. Calls Lua only in ways that raise no errors.
/// @throws ScriptFault at `line`
[[nodiscard]] Key key_from_results(lua_State* lua, int first, int line);

}  // namespace contextune::space
