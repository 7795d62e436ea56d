#include "session.hpp"

TEST_CASE("A simulated kernel computes its results", "[launch]") {
  Session session;
  const int n = 1000;
  const std::vector<float> ones(1000, 1.0F);
  const CUdeviceptr x = session.memory(4000);
  const CUdeviceptr y = session.memory(4000);
  SUCCEEDS(cuMemcpyHtoD_v2(x, ones.data(), 4000));
  int count = n;
  CUdeviceptr in = x;
  CUdeviceptr out = y;
  for (int i = 0; i < 3; ++i)
    SUCCEEDS(session.launch(session.function("add"), 2, 64, {&count, &in, &out}));
  CHECK(session.floats(y, 1000) == std::vector<float>(1000, 3.0F));
}

TEST_CASE("Arguments come from kernelParams and from a packed buffer alike", "[launch]") {
  Session session;
  const CUdeviceptr out = session.memory(3 * sizeof(double));
  struct {
    char a = 7;
    double b = 2.5;
    int c = -3;
    CUdeviceptr d;
  } packed;
  packed.d = out;
  std::size_t bytes = sizeof packed;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  const CUfunction mixed = session.function("mixed");
  SUCCEEDS(cuLaunchKernel(mixed, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra));
  const std::vector<double> expected{7, 2.5, -3};
  std::vector<double> values(3);
  SUCCEEDS(cuMemcpyDtoH_v2(values.data(), out, 24));
  CHECK(values == expected);

  packed.a = 9;
  SUCCEEDS(session.launch(mixed, 1, 1, {&packed.a, &packed.b, &packed.c, &packed.d}));
  SUCCEEDS(cuMemcpyDtoH_v2(values.data(), out, 24));
  CHECK(values.front() == 9);

  // Both, or too small a buffer, is an error.
  void* parameters[] = {&packed.a, &packed.b, &packed.c, &packed.d};
  CHECK(cuLaunchKernel(mixed, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, extra) ==
        CUDA_ERROR_INVALID_VALUE);
  bytes = 8;
  CHECK(cuLaunchKernel(mixed, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra) ==
        CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("Launches that no GPU would take are refused", "[launch]") {
  Session session;
  const CUfunction empty = session.function("empty");
  CHECK(session.launch(empty, 0, 32) == CUDA_ERROR_INVALID_VALUE);
  CHECK(session.launch(empty, 1, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(session.launch(empty, 1, 1025) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuLaunchKernel(empty, 1, 65536, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(cuLaunchKernel(empty, 1, 1, 1, 1, 1, 65, 0, nullptr, nullptr, nullptr) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(session.launch(nullptr, 1, 32) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(session.launch(session.function("add"), 1, 32) == CUDA_ERROR_INVALID_VALUE);
  // 128 registers leave room for 512 threads.
  const CUfunction hungry = session.function("gemm<64, 64>");
  SUCCEEDS(session.launch(hungry, 1, 512));
  CHECK(session.launch(hungry, 1, 544) == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
}

TEST_CASE("Dynamic shared memory past 48 KiB needs the attribute", "[launch]") {
  Session session;
  const CUfunction empty = session.function("empty");
  SUCCEEDS(session.launch(empty, 1, 32, {}, 48 << 10));
  CHECK(session.launch(empty, 1, 32, {}, (48 << 10) + 1) == CUDA_ERROR_INVALID_VALUE);
  SUCCEEDS(cuFuncSetAttribute(empty, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 200 << 10));
  SUCCEEDS(session.launch(empty, 1, 32, {}, 200 << 10));
  CHECK(cuFuncSetAttribute(empty, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 228 << 10) ==
        CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("A cooperative launch must fit on the device at once", "[launch]") {
  Session session;
  const CUfunction empty = session.function("empty");
  int resident = 0;
  SUCCEEDS(cuOccupancyMaxActiveBlocksPerMultiprocessor(&resident, empty, 1024, 0));
  CHECK(resident == 2);
  const auto fits = static_cast<unsigned>(resident) * 132;
  SUCCEEDS(cuLaunchCooperativeKernel(empty, fits, 1, 1, 1024, 1, 1, 0, nullptr, nullptr));
  CHECK(cuLaunchCooperativeKernel(empty, fits + 1, 1, 1, 1024, 1, 1, 0, nullptr, nullptr) ==
        CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
}

TEST_CASE("cuLaunchKernelEx checks its attributes", "[launch]") {
  Session session;
  CUlaunchAttribute attribute{};
  CUlaunchConfig config{};
  config.gridDimX = 12;
  config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = 64;
  config.blockDimY = config.blockDimZ = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  const CUfunction empty = session.function("empty");
  attribute.id = CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
  attribute.value.sharedMemCarveout = 50;
  SUCCEEDS(cuLaunchKernelEx(&config, empty, nullptr, nullptr));
  attribute.value.sharedMemCarveout = 101;
  CHECK(cuLaunchKernelEx(&config, empty, nullptr, nullptr) == CUDA_ERROR_INVALID_VALUE);
  attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attribute.value.clusterDim = {4, 1, 1};
  SUCCEEDS(cuLaunchKernelEx(&config, empty, nullptr, nullptr));
  attribute.value.clusterDim = {5, 1, 1};  // does not divide the grid
  CHECK(cuLaunchKernelEx(&config, empty, nullptr, nullptr) == CUDA_ERROR_INVALID_VALUE);
  attribute.value.clusterDim = {12, 1, 1};
  CHECK(cuLaunchKernelEx(&config, empty, nullptr, nullptr) == CUDA_ERROR_INVALID_CLUSTER_SIZE);
  SUCCEEDS(cuFuncSetAttribute(empty, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
  SUCCEEDS(cuLaunchKernelEx(&config, empty, nullptr, nullptr));
}

TEST_CASE("A kernel handle launches like a function but is not one", "[launch][library]") {
  Session session;
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  SUCCEEDS(cuLibraryLoadData(&library, test_image(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  SUCCEEDS(cuLibraryGetKernel(&kernel, library, "mixed"));
  const auto cast = reinterpret_cast<CUfunction>(kernel);
  const char* name = nullptr;
  CHECK(cuFuncGetName(&name, cast) == CUDA_ERROR_INVALID_HANDLE);
  int value = 0;
  CHECK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, cast) == CUDA_ERROR_INVALID_HANDLE);
  SUCCEEDS(cuKernelGetName(&name, kernel));
  CHECK(std::string(name) == "mixed");
  std::size_t offset = 0;
  std::size_t bytes = 0;
  SUCCEEDS(cuKernelGetParamInfo(kernel, 1, &offset, &bytes));
  CHECK(offset == 8);
  CHECK(bytes == 8);
  CHECK(cuKernelGetParamInfo(kernel, 4, &offset, &bytes) == CUDA_ERROR_INVALID_VALUE);

  SUCCEEDS(cuLibraryGetKernel(&kernel, library, "empty"));
  SUCCEEDS(session.launch(reinterpret_cast<CUfunction>(kernel), 1, 32));
  // The function of the context shares what was set on the kernel.
  CUfunction function = nullptr;
  SUCCEEDS(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 25, kernel, 0));
  SUCCEEDS(cuKernelGetFunction(&function, kernel));
  SUCCEEDS(
      cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, function));
  CHECK(value == 25);
  SUCCEEDS(cuLibraryUnload(library));
  CHECK(session.launch(reinterpret_cast<CUfunction>(kernel), 1, 32) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("A function tells its module, its parameters and that it is loaded", "[module]") {
  Session session;
  const CUfunction mixed = session.function("mixed");  // of char, double, int and a pointer
  const std::size_t offsets[] = {0, 8, 16, 24};
  const std::size_t sizes[] = {1, 8, 4, 8};
  std::size_t offset = 0;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    SUCCEEDS(cuFuncGetParamInfo(mixed, i, &offset, &bytes));
    CHECK(offset == offsets[i]);
    CHECK(bytes == sizes[i]);
  }
  SUCCEEDS(cuFuncGetParamInfo(mixed, 1, &offset, nullptr));
  CHECK(cuFuncGetParamInfo(mixed, 4, &offset, &bytes) == CUDA_ERROR_INVALID_VALUE);
  // Those of a kernel written as what one thread does, without the thread.
  SUCCEEDS(cuFuncGetParamInfo(session.function("add"), 2, &offset, &bytes));
  CHECK(offset == 16);
  CHECK(cuFuncGetParamInfo(session.function("add"), 3, &offset, &bytes) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(cuFuncGetParamInfo(session.function("empty"), 0, &offset, &bytes) ==
        CUDA_ERROR_INVALID_VALUE);
  CUmodule module = nullptr;
  SUCCEEDS(cuFuncGetModule(&module, mixed));
  CHECK(module == session.module);
  CUfunctionLoadingState state = CU_FUNCTION_LOADING_STATE_UNLOADED;
  SUCCEEDS(cuFuncLoad(mixed));
  SUCCEEDS(cuFuncIsLoaded(&state, mixed));
  CHECK(state == CU_FUNCTION_LOADING_STATE_LOADED);
}

TEST_CASE("Modules list what they hold", "[module]") {
  Session session;
  unsigned count = 0;
  SUCCEEDS(cuModuleGetFunctionCount(&count, session.module));
  CHECK(count == 9);
  std::vector<CUfunction> functions(count);
  SUCCEEDS(cuModuleEnumerateFunctions(functions.data(), count, session.module));
  CHECK(functions.back() == session.function("gemm<64, 64>"));
  CUfunction missing = nullptr;
  CHECK(cuModuleGetFunction(&missing, session.module, "absent") == CUDA_ERROR_NOT_FOUND);
  CUdeviceptr counter = 0;
  std::size_t bytes = 0;
  SUCCEEDS(cuModuleGetGlobal_v2(&counter, &bytes, session.module, "counter"));
  CHECK(bytes == 16);
  SUCCEEDS(cuMemsetD32_v2(counter, 5, 4));
  CUmodule other = nullptr;
  CHECK(cuModuleLoadData(&other,
                         "\x7f"
                         "ELF") == CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK(cuModuleLoadData(&other, "simcuda image 2\n") == CUDA_ERROR_INVALID_IMAGE);
  CHECK(cuModuleLoadData(&other, "simcuda image 1\nkernel nobody\n") == CUDA_ERROR_NOT_FOUND);
  CHECK(cuModuleLoad(&other, "/nonexistent.cubin") == CUDA_ERROR_FILE_NOT_FOUND);
}

TEST_CASE("The step by step launches of old programs work", "[launch][legacy]") {
  Session session;
  const CUfunction fill = session.function("fill");
  const CUdeviceptr x = session.memory(64);
  SUCCEEDS(cuFuncSetBlockShape(fill, 16, 1, 1));
  SUCCEEDS(cuParamSeti(fill, 0, 16));
  CUdeviceptr pointer = x;
  SUCCEEDS(cuParamSetv(fill, 8, &pointer, sizeof pointer));
  SUCCEEDS(cuParamSetf(fill, 16, 4.0F));
  SUCCEEDS(cuParamSetSize(fill, 20));
  SUCCEEDS(cuLaunchGrid(fill, 1, 1));
  CHECK(session.floats(x, 16) == std::vector<float>(16, 4.0F));
}
