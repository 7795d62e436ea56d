# The target contextune_lua: the Lua interpreter, static, fit to be linked into a shared object.
# Debian's liblua5.4.a is position-independent but for three variables of the C library, which it
# takes to be in the executable. They are renamed in a copy, and defined hidden beside it.
if(TARGET contextune_lua)
  return()
endif()
if(NOT CMAKE_OBJCOPY)
  message(FATAL_ERROR "objcopy was not found. Install binutils, or set CMAKE_OBJCOPY.")
endif()

set(_lua_copy ${CMAKE_BINARY_DIR}/lua/libcontextune_lua_archive.a)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/lua)
add_custom_command(OUTPUT ${_lua_copy}
  COMMAND ${CMAKE_OBJCOPY}
    --redefine-sym stdin=contextune_lua_stdin
    --redefine-sym stdout=contextune_lua_stdout
    --redefine-sym stderr=contextune_lua_stderr
    ${CONTEXTUNE_LUA_ARCHIVE} ${_lua_copy}
  DEPENDS ${CONTEXTUNE_LUA_ARCHIVE}
  COMMENT "Making Lua fit for a shared object" VERBATIM)
add_custom_target(contextune_lua_copy DEPENDS ${_lua_copy})

add_library(contextune_lua_archive STATIC IMPORTED GLOBAL)
set_target_properties(contextune_lua_archive PROPERTIES IMPORTED_LOCATION ${_lua_copy})
add_dependencies(contextune_lua_archive contextune_lua_copy)

add_library(contextune_lua_stdio STATIC ${PROJECT_SOURCE_DIR}/src/space/lua_stdio.c)
target_link_libraries(contextune_lua_stdio PRIVATE contextune_build_flags)

add_library(contextune_lua INTERFACE)
target_include_directories(contextune_lua SYSTEM INTERFACE ${CONTEXTUNE_LUA_INCLUDE_DIR})
target_link_libraries(contextune_lua INTERFACE contextune_lua_archive contextune_lua_stdio m)
# The archive's functions have default visibility: kept inside, so that a Lua of the host process
# neither sees them nor takes their place.
target_link_options(contextune_lua INTERFACE
  LINKER:--exclude-libs,libcontextune_lua_archive.a)
