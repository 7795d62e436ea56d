# contextune_add_test(NAME unit.schedule SOURCES ... [LIBRARIES ...] [LABELS unit] [TIMEOUT 60]
#                     [COST 0] [PROCESSORS 1] [ENVIRONMENT A=b ...] [UNSANITIZED]): one Catch2
#                     program, one ctest entry. Those that cost the most seconds are begun first.
#                     UNSANITIZED: not every case of it is also in a sanitized build.
add_library(contextune_catch INTERFACE)
target_include_directories(contextune_catch INTERFACE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(contextune_catch INTERFACE Catch2::Catch2WithMain)
target_compile_definitions(contextune_catch INTERFACE
  CONTEXTUNE_CATCH2_VERSION=${Catch2_VERSION_MAJOR}
  # An exception in an assertion then ends its test, and a seventh of what the compiler does is saved.
  CATCH_CONFIG_FAST_COMPILE)
# What is tested is as optimised as it is installed; the tests need not be, and -Og compiles faster.
target_compile_options(contextune_catch INTERFACE $<$<CONFIG:Release>:-Og>)
if(CONTEXTUNE_SANITIZE MATCHES undefined)
  # Nor do they need those checks at each access that double what it takes to compile Catch2's macros.
  target_compile_options(contextune_catch INTERFACE
    -fno-sanitize=null,alignment,vptr,object-size)
endif()
# Catch2 2 is one header of 18,000 lines: read once for all tests. It has to be read by a program, as
# the code of libraries is generated differently.
add_executable(contextune_catch_header ${PROJECT_SOURCE_DIR}/tests/catch_header.cpp)
target_link_libraries(contextune_catch_header PRIVATE contextune_build_flags contextune_catch)
target_precompile_headers(contextune_catch_header PRIVATE ${PROJECT_SOURCE_DIR}/tests/catch.hpp)

file(WRITE ${CMAKE_BINARY_DIR}/tested_sanitized.txt "") # names of those that this build leaves out
function(contextune_add_test)
  cmake_parse_arguments(ARG "UNSANITIZED" "NAME;TIMEOUT;COST;PROCESSORS" "SOURCES;LIBRARIES;LABELS;ENVIRONMENT" ${ARGN})
  string(REPLACE "." "_" target "test_${ARG_NAME}")
  add_executable(${target} ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE contextune_build_flags contextune_catch ${ARG_LIBRARIES})
  target_precompile_headers(${target} REUSE_FROM contextune_catch_header)
  if(CONTEXTUNE_TESTED_SANITIZED AND "unit" IN_LIST ARG_LABELS AND NOT ARG_UNSANITIZED)
    file(APPEND ${CMAKE_BINARY_DIR}/tested_sanitized.txt "contextune.${ARG_NAME}\n")
    set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 60)
  endif()
  if(NOT ARG_COST)
    set(ARG_COST 0)
  endif()
  if(NOT ARG_PROCESSORS)
    set(ARG_PROCESSORS 1)
  endif()
  set(test contextune.${ARG_NAME})
  if(CONTEXTUNE_SANITIZE)
    string(REPLACE "," "+" sanitizers "${CONTEXTUNE_SANITIZE}")
    set(test "${test} (${sanitizers})")
    math(EXPR ARG_TIMEOUT "2 * ${ARG_TIMEOUT}")  # beside others, on a machine that is busy
    # Each process sleeps at its end for a race to come; a second, where nothing is said. A thread of
    # the case before may still be about to end where the next one forks.
    list(APPEND ARG_ENVIRONMENT TSAN_OPTIONS=atexit_sleep_ms=50:die_after_fork=0)
  endif()
  add_test(NAME "${test}" COMMAND ${target})
  set_tests_properties("${test}" PROPERTIES
    TIMEOUT ${ARG_TIMEOUT} COST ${ARG_COST} PROCESSORS ${ARG_PROCESSORS} LABELS "${ARG_LABELS}" ENVIRONMENT "CONTEXTUNE_STORE=off;${ARG_ENVIRONMENT}")
endfunction()

# contextune_add_simulated_program(NAME FOLDER SOURCE...): a program on the simulated driver that knows
# nothing of contextune; lies in that folder of the build.
function(contextune_add_simulated_program name folder)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE
    contextune_build_flags contextune_cuda_headers simcuda Threads::Threads ${CMAKE_DL_LIBS})
  target_include_directories(${name} SYSTEM PRIVATE ${CONTEXTUNE_NVTX_INCLUDE_DIR})
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${folder} SKIP_BUILD_RPATH ON)
endfunction()

# contextune_add_script_test(NAME SCRIPT [ARGUMENTS ...] [PROPERTIES COST 20 ...]): a Python script that
# starts programs of this build; one ctest entry, whose label is the first part of its name.
function(contextune_add_script_test name script)
  cmake_parse_arguments(ARG "" "" "ARGUMENTS;PROPERTIES" ${ARGN})
  string(REGEX REPLACE "\\..*" "" label ${name})
  add_test(NAME contextune.${name}
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/${script} ${ARG_ARGUMENTS})
  set_tests_properties(contextune.${name} PROPERTIES LABELS ${label} TIMEOUT 300 ${ARG_PROPERTIES}
    ENVIRONMENT "CONTEXTUNE_TEST_BUILD=${PROJECT_BINARY_DIR};PYTHONDONTWRITEBYTECODE=1")
endfunction()
