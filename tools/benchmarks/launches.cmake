# Chained and gathered launches on a real GPU. The program does not link contextune: one of its
# children runs without.
if(CONTEXTUNE_BUILD_GPU_TESTS)
  set(_program ${CMAKE_BINARY_DIR}/gpu/launches)
  add_custom_command(OUTPUT ${_program}
    COMMAND ${CONTEXTUNE_NVCC} -O3 -std=c++20 -ccbin ${CMAKE_CXX_COMPILER} -cudart static
            -gencode arch=compute_${CONTEXTUNE_GPU_ARCHITECTURE},code=sm_${CONTEXTUNE_GPU_ARCHITECTURE}
            ${CMAKE_CURRENT_SOURCE_DIR}/launches.cu $<TARGET_FILE:contextune_bench_children>
            -o ${_program}
    DEPENDS launches.cu child.hpp settings.hpp contextune_bench_children contextune_preload
            contextune_shared
    COMMENT "nvcc launches" VERBATIM)
  add_custom_target(contextune_gpu_launches ALL DEPENDS ${_program})
endif()
