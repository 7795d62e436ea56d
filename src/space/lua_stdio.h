/* The standard streams under the names by which contextune's copy of Lua asks for them. A space
 * file reaches no function that uses one; they are set nevertheless, so that none is ever null. */
#pragma once

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

extern FILE* contextune_lua_stdin __attribute__((visibility("hidden")));
extern FILE* contextune_lua_stdout __attribute__((visibility("hidden")));
extern FILE* contextune_lua_stderr __attribute__((visibility("hidden")));

/* Sets all three. Call once, before the first Lua state. */
void contextune_lua_set_stdio(void) __attribute__((visibility("hidden")));

#ifdef __cplusplus
}
#endif
