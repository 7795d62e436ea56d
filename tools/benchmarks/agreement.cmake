# The agreement benchmark: whose libcuda.so.1 and libnccl.so.2 are used is said when it is started.
if(NOT TARGET simnccl)
  return()
endif()
set(_meeting ${PROJECT_SOURCE_DIR}/tools/demo_program)
add_executable(contextune_bench_agreement agreement.cpp ${_meeting}/rank_meeting.cpp)
target_link_libraries(contextune_bench_agreement PRIVATE
  contextune_build_flags contextune::contextune contextune_bench_children contextune_cuda_headers simnccl simcuda
  ${CMAKE_DL_LIBS})
target_include_directories(contextune_bench_agreement PRIVATE ${_meeting})
target_include_directories(contextune_bench_agreement SYSTEM PRIVATE ${CONTEXTUNE_NVTX_INCLUDE_DIR})
add_dependencies(contextune_bench_agreement
  contextune contextune_shared contextune_preload contextune_bench_collective_decision simcupti)
set_target_properties(contextune_bench_agreement PROPERTIES
  RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin
  BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/../lib")
