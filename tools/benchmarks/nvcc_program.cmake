# Programs with kernels, built by nvcc, that use contextune as a library.
find_program(CONTEXTUNE_NVCC nvcc HINTS ${CONTEXTUNE_CUDA_INCLUDE_DIR}/../bin ENV CUDA_HOME
             PATHS /usr/local/cuda/bin PATH_SUFFIXES bin DOC "CUDA C++ compiler")
set(CONTEXTUNE_GPU_ARCHITECTURE 90 CACHE STRING "Architecture of the test programs' machine code")

# contextune_nvcc_program(NAME SOURCE LIBRARIES ...): a program with kernels that links contextune as a
# program without CMake would. Its PTX lies beside its machine code: from that contextune knows what the
# kernels read and write, so that a replay can compare configs in the only visit of a region.
function(contextune_nvcc_program name source)
  set(program ${CMAKE_BINARY_DIR}/gpu/${name})
  set(archives)
  foreach(library ${ARGN})
    list(APPEND archives $<TARGET_FILE:${library}>)
  endforeach()
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/gpu)
  get_filename_component(source ${source} ABSOLUTE)
  add_custom_command(OUTPUT ${program}
    COMMAND ${CONTEXTUNE_NVCC} -O3 -std=c++20 -ccbin ${CMAKE_CXX_COMPILER} -I${PROJECT_SOURCE_DIR}/include
            -gencode arch=compute_${CONTEXTUNE_GPU_ARCHITECTURE},code=sm_${CONTEXTUNE_GPU_ARCHITECTURE}
            -gencode arch=compute_${CONTEXTUNE_GPU_ARCHITECTURE},code=compute_${CONTEXTUNE_GPU_ARCHITECTURE}
            ${source} ${archives} $<TARGET_FILE:contextune_client>
            -Xlinker --no-as-needed $<TARGET_FILE:contextune_preload>
            $<TARGET_FILE:contextune_shared> -Xlinker "-rpath,\$ORIGIN/../lib" -o ${program}
    DEPENDS ${source} ${ARGN} contextune_client contextune_preload contextune_shared
    COMMENT "nvcc ${name}" VERBATIM)
  add_custom_target(contextune_gpu_${name} ALL DEPENDS ${program})
endfunction()
