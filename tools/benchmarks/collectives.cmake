# The programs of the benchmarks of collectives and of calls of NCCL. They are linked like any program on the
# driver API and NCCL, without a run path: whoever starts one decides which libcuda.so.1 and libnccl.so.2 it gets.
if(NOT TARGET simnccl)
  return()
endif()
add_executable(contextune_bench_collectives
  collectives.cpp collective_rotation.cpp collective_work.cpp hand_tuner.cpp
  ../demo_program/rank_meeting.cpp)
target_include_directories(contextune_bench_collectives PRIVATE ../demo_program)
# NCCL finds the program's own tuner plugin by its name.
set_target_properties(contextune_bench_collectives PROPERTIES
  RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin SKIP_BUILD_RPATH ON ENABLE_EXPORTS ON)
target_link_libraries(contextune_bench_collectives PRIVATE
  contextune_build_flags contextune_cuda_headers simnccl simcuda ${CMAKE_DL_LIBS})
target_include_directories(contextune_bench_collectives SYSTEM PRIVATE ${CONTEXTUNE_NVTX_INCLUDE_DIR})

add_executable(contextune_bench_nccl_calls nccl_calls.cpp ../demo_program/rank_meeting.cpp)
target_include_directories(contextune_bench_nccl_calls PRIVATE ../demo_program)
set_target_properties(contextune_bench_nccl_calls PROPERTIES
  RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin SKIP_BUILD_RPATH ON)
target_link_libraries(contextune_bench_nccl_calls PRIVATE
  contextune_build_flags contextune_cuda_headers simnccl simcuda ${CMAKE_DL_LIBS})
