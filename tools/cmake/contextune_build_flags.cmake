# What every target of contextune is compiled with.
include(GNUInstallDirs)
include(contextune_rooms)

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON) # typeof and __attribute__ in the frontend
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
  endif()
endif()

add_library(contextune_build_flags INTERFACE)
target_compile_options(contextune_build_flags INTERFACE
  -Wall -Wextra -Wshadow -Wcast-qual -Wconversion -Wsign-conversion
  $<$<COMPILE_LANGUAGE:CXX>:-Woverloaded-virtual>
  # GCC 12 sees overlaps and overruns in std::string that are not there (its bug 105651).
  "$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict;-Wno-array-bounds;-Wno-stringop-overflow>"
  # Its garbage is collected from 512 MiB on, not from 128 MiB: a tenth less time.
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:--param=ggc-min-heapsize=524288>
  # A unique symbol would be shared with another copy of the same library in the host process.
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-fno-gnu-unique>
  $<$<BOOL:${CONTEXTUNE_WERROR}>:-Werror>)
set(contextune_include_path
  ${PROJECT_SOURCE_DIR}/include
  "$<$<NOT:$<BOOL:$<TARGET_PROPERTY:CONTEXTUNE_WALLED>>>:${PROJECT_SOURCE_DIR}/src>")
target_include_directories(contextune_build_flags INTERFACE ${contextune_include_path}
  "$<$<NOT:$<BOOL:$<TARGET_PROPERTY:CONTEXTUNE_WALLED>>>:${PROJECT_SOURCE_DIR}>")

if(CONTEXTUNE_SANITIZE)
  set(_sanitize -fsanitize=${CONTEXTUNE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  if(CONTEXTUNE_SANITIZE MATCHES address AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # Accesses are checked in calls instead of inline: much less code, compiled in a fifth less time.
    # The address sanitizer reports what comes of null and too small objects; addresses that are
    # misaligned or overflow are left to the fuzzers, which clang builds: another third less.
    list(APPEND _sanitize --param=asan-instrumentation-with-call-threshold=0
      -fno-sanitize=null,object-size,alignment,pointer-overflow)
  endif()
  add_compile_options(${_sanitize})
  add_link_options(${_sanitize})
endif()

# contextune_add_library(NAME SOURCES ... [LIBRARIES ...]): one part of the core, static, to be
# linked into libcontextune.so and into the unit tests.
function(contextune_add_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC ${ARG_LIBRARIES} PRIVATE contextune_build_flags)
  target_include_directories(${name} PUBLIC ${contextune_include_path})
  contextune_wall(${name} ${ARG_SOURCES})
endfunction()
