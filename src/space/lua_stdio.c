#include "space/lua_stdio.h"

FILE* contextune_lua_stdin;
FILE* contextune_lua_stdout;
FILE* contextune_lua_stderr;

void contextune_lua_set_stdio(void) {
  contextune_lua_stdin = stdin;
  contextune_lua_stdout = stdout;
  contextune_lua_stderr = stderr;
}
