# The replay benchmark: on the simulated driver, and with nvcc on a real GPU.
add_library(contextune_bench_replay_runs STATIC
  replay_child.cpp replay_log.cpp replay_report.cpp replay_runs.cpp)
target_link_libraries(contextune_bench_replay_runs
  PUBLIC contextune_client contextune_bench_children PRIVATE contextune_build_flags ${CMAKE_DL_LIBS})
target_include_directories(contextune_bench_replay_runs SYSTEM PRIVATE ${CONTEXTUNE_NVTX_INCLUDE_DIR})

add_executable(contextune_bench_replay_simulated replay_simulated.cpp)
target_link_libraries(contextune_bench_replay_simulated PRIVATE
  contextune_build_flags contextune_bench_replay_runs contextune::contextune simcuda)
add_dependencies(contextune_bench_replay_simulated simcupti contextune)
set_target_properties(contextune_bench_replay_simulated PROPERTIES
  RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

if(CONTEXTUNE_BUILD_GPU_TESTS)
  contextune_nvcc_program(replay replay.cu contextune_bench_replay_runs contextune_bench_children)
  add_dependencies(contextune_gpu_replay contextune)
endif()
