#include "session.hpp"

TEST_CASE("The example of the README loads, computes and costs time", "[example]") {
  Session session;
  CUmodule module = nullptr;
  REQUIRE(cuModuleLoad(&module, SIMCUDA_TEST_EXAMPLE) == CUDA_SUCCESS);
  CUfunction saxpy = nullptr;
  REQUIRE(cuModuleGetFunction(&saxpy, module, "saxpy") == CUDA_SUCCESS);
  const CUdeviceptr x = session.memory(4000);
  const CUdeviceptr y = session.memory(4000);
  const std::vector<float> ones(1000, 1.0F);
  SUCCEEDS(cuMemcpyHtoD_v2(x, ones.data(), 4000));
  int n = 1000;
  float a = 2.5F;
  CUdeviceptr in = x;
  CUdeviceptr out = y;
  SUCCEEDS(session.launch(saxpy, 2, 64, {&n, &a, &in, &out}));
  CHECK(session.floats(y, 1000) == std::vector<float>(1000, 2.5F));
  CHECK(session.last_time() > 0.6e-6);
}

TEST_CASE("A program that loads a cubin gets the simulated image beside it", "[example]") {
  Session session;
  CUmodule module = nullptr;
  // The cubin itself does not exist; CMakeLists.txt put `.sim` beside its name.
  CHECK(cuModuleLoad(&module, SIMCUDA_TEST_CUBIN) == CUDA_SUCCESS);
  unsigned count = 0;
  SUCCEEDS(cuModuleGetFunctionCount(&count, module));
  CHECK(count == 1);
}
