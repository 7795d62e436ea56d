# Programs of which hosts.py compares bare runs with those under contextune. They know nothing of it.
if(CONTEXTUNE_BUILD_GPU_TESTS)
  set(_program ${CMAKE_BINARY_DIR}/gpu/hosts)
  add_custom_command(OUTPUT ${_program}
    COMMAND ${CONTEXTUNE_NVCC} -O3 -std=c++17 -ccbin ${CMAKE_CXX_COMPILER} -cudart static
            -gencode arch=compute_${CONTEXTUNE_GPU_ARCHITECTURE},code=sm_${CONTEXTUNE_GPU_ARCHITECTURE}
            ${CMAKE_CURRENT_SOURCE_DIR}/hosts.cu -o ${_program}
    DEPENDS hosts.cu contextune contextune_preload contextune_shared
    COMMENT "nvcc hosts" VERBATIM)
  add_custom_target(contextune_gpu_hosts ALL DEPENDS ${_program})
endif()
