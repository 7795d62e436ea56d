# What contextune is built from. CUDA and CUPTI are headers only: libraries are opened at run time.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(Catch2 3 QUIET)
if(NOT Catch2_FOUND)
  find_package(Catch2 2 REQUIRED)
endif()

find_path(CONTEXTUNE_LUA_INCLUDE_DIR lua.h PATH_SUFFIXES lua5.4 REQUIRED DOC "Folder of lua.h (5.4)")
find_library(CONTEXTUNE_LUA_ARCHIVE NAMES liblua5.4.a REQUIRED DOC "Static Lua 5.4 library")

if(CONTEXTUNE_HOST_ONLY)
  return()
endif()
find_package(CLI11 REQUIRED)

find_path(CONTEXTUNE_CUDA_INCLUDE_DIR cudaTypedefs.h
  HINTS ENV CUDA_HOME ENV CUDA_PATH
  PATHS /usr/local/cuda /usr/local/cuda/targets/x86_64-linux
  PATH_SUFFIXES include
  DOC "Folder of cuda.h")
if(NOT CONTEXTUNE_CUDA_INCLUDE_DIR)
  message(FATAL_ERROR "cuda.h was not found. Install the CUDA Toolkit (12.4 or later), or set "
                      "CUDA_HOME to where it is.")
endif()
find_path(CONTEXTUNE_CUPTI_INCLUDE_DIR cupti.h
  HINTS ${CONTEXTUNE_CUDA_INCLUDE_DIR} ${CONTEXTUNE_CUDA_INCLUDE_DIR}/../extras/CUPTI/include
  DOC "Folder of cupti.h")
if(NOT CONTEXTUNE_CUPTI_INCLUDE_DIR)
  message(FATAL_ERROR "cupti.h was not found beside ${CONTEXTUNE_CUDA_INCLUDE_DIR}. Install CUPTI "
                      "(part of the CUDA Toolkit), or set CONTEXTUNE_CUPTI_INCLUDE_DIR.")
endif()
add_library(contextune_cuda_headers INTERFACE)
target_include_directories(contextune_cuda_headers SYSTEM INTERFACE
  ${CONTEXTUNE_CUDA_INCLUDE_DIR} ${CONTEXTUNE_CUPTI_INCLUDE_DIR})

# Fatbins are compressed with one or the other. Linked statically, so that what is preloaded into a
# program brings its own; libcontextune.so hides them.
foreach(library lz4 zstd)
  string(TOUPPER ${library} _upper)
  find_path(CONTEXTUNE_${_upper}_INCLUDE_DIR ${library}.h REQUIRED DOC "Folder of ${library}.h")
  find_library(CONTEXTUNE_${_upper}_ARCHIVE NAMES lib${library}.a REQUIRED
    DOC "Static ${library} library")
  add_library(contextune_${library} STATIC IMPORTED GLOBAL)
  set_target_properties(contextune_${library} PROPERTIES
    IMPORTED_LOCATION ${CONTEXTUNE_${_upper}_ARCHIVE}
    INTERFACE_INCLUDE_DIRECTORIES ${CONTEXTUNE_${_upper}_INCLUDE_DIR})
endforeach()
