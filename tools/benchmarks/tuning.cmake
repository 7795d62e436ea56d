# The tuning benchmark: on the simulated driver, and with nvcc on a real GPU.
add_library(contextune_bench_tuning_runs STATIC tuning_log.cpp tuning_runs.cpp)
target_link_libraries(contextune_bench_tuning_runs
  PUBLIC contextune_client contextune_bench_children PRIVATE contextune_build_flags)

add_executable(contextune_bench_tuning_simulated tuning_simulated.cpp)
target_link_libraries(contextune_bench_tuning_simulated PRIVATE
  contextune_build_flags contextune_bench_tuning_runs contextune::contextune simcuda)
add_dependencies(contextune_bench_tuning_simulated simcupti)
set_target_properties(contextune_bench_tuning_simulated PROPERTIES
  RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

# The first entry of a program that starts with stored winners.
add_executable(contextune_bench_first_entry first_entry.cpp)
target_link_libraries(contextune_bench_first_entry PRIVATE
  contextune_build_flags contextune_bench_children simcuda)
set_target_properties(contextune_bench_first_entry PROPERTIES
  RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
add_dependencies(contextune_bench_first_entry contextune_shared contextune_preload simcupti)

if(CONTEXTUNE_BUILD_GPU_TESTS)
  contextune_nvcc_program(tuning tuning.cu contextune_bench_tuning_runs contextune_bench_children)
  contextune_nvcc_program(runtime_macro ${PROJECT_SOURCE_DIR}/tests/gpu/runtime_macro.cu)
  contextune_nvcc_program(choice_copies ${PROJECT_SOURCE_DIR}/tests/gpu/choice_copies.cu)
  contextune_nvcc_program(choice_launches ${PROJECT_SOURCE_DIR}/tests/gpu/choice_launches.cu)
endif()
