#include <cstring>
#include <string>
#include <vector>

#include "catch.hpp"
#include "intercept/site/launch_cache.hpp"
#include "intercept/site/launcher.hpp"

using namespace contextune::intercept;

namespace {

/// What the fake driver was last called with.
struct Received {
  std::string entry;
  CUfunction function = nullptr;
  unsigned grid = 0;
  unsigned block = 0;
  unsigned shared_bytes = 0;
  CUstream stream = nullptr;
  std::vector<CUlaunchAttribute> attributes;
} received;

template <int Form>
CUresult CUDAAPI plain(CUfunction f, unsigned gx, unsigned, unsigned, unsigned bx, unsigned,
                       unsigned, unsigned shared, CUstream stream, void**, void**) {
  received = {Form == 0 ? "plain" : "plain_ptsz", f, gx, bx, shared, stream, {}};
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cooperative(CUfunction f, unsigned gx, unsigned, unsigned, unsigned bx, unsigned,
                             unsigned, unsigned shared, CUstream stream, void**) {
  received = {"cooperative", f, gx, bx, shared, stream, {}};
  return CUDA_SUCCESS;
}
template <int Form>
CUresult CUDAAPI extended(const CUlaunchConfig* config, CUfunction f, void**, void**) {
  received = {Form == 0 ? "ex" : "ex_ptsz",
              f,
              config->gridDimX,
              config->blockDimX,
              config->sharedMemBytes,
              config->hStream,
              {config->attrs, config->attrs + config->numAttrs}};
  return CUDA_SUCCESS;
}

void* real(contextune_fn fn) {
  switch (fn) {
    case contextune_fn_cuLaunchKernel:
      return reinterpret_cast<void*>(&plain<0>);
    case contextune_fn_cuLaunchKernel_ptsz:
      return reinterpret_cast<void*>(&plain<1>);
    case contextune_fn_cuLaunchKernelEx:
      return reinterpret_cast<void*>(&extended<0>);
    case contextune_fn_cuLaunchKernelEx_ptsz:
      return reinterpret_cast<void*>(&extended<1>);
    case contextune_fn_cuLaunchCooperativeKernel:
      return reinterpret_cast<void*>(&cooperative);
    default:
      return nullptr;
  }
}

Launcher launcher() {
  contextune_frontend frontend{};
  frontend.real = &real;
  return Launcher(&frontend);
}

contextune_launch plain_call(contextune_fn fn = contextune_fn_cuLaunchKernel) {
  contextune_launch call{};
  call.fn = fn;
  call.function = reinterpret_cast<CUfunction>(16);
  call.grid[0] = 4;
  call.block[0] = 128;
  call.grid[1] = call.grid[2] = call.block[1] = call.block[2] = 1;
  call.shared_bytes = 100;
  return call;
}

Variant variant_of(const contextune_launch& call) {
  Variant variant;
  variant.usable = true;
  variant.function = call.function;
  variant.grid = {8, 1, 1};
  variant.block = {64, 1, 1};
  variant.shared_bytes = 200;
  return variant;
}

CUlaunchAttribute priority(int value) {
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  attribute.value.priority = value;
  return attribute;
}

CUlaunchAttribute cluster(unsigned x) {
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attribute.value.clusterDim.x = x;
  attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
  return attribute;
}

}  // namespace

TEST_CASE("A variant without attributes stays on the entry point of the program", "[launch]") {
  const contextune_launch call = plain_call(contextune_fn_cuLaunchKernel_ptsz);
  CHECK(launcher().as_variant(Launch(call), variant_of(call)) == CUDA_SUCCESS);
  CHECK(received.entry == "plain_ptsz");
  CHECK(received.grid == 8);
  CHECK(received.block == 64);
  CHECK(received.shared_bytes == 200);
  CHECK(received.stream == nullptr);
}

TEST_CASE("A cooperative launch stays cooperative", "[launch]") {
  const contextune_launch call = plain_call(contextune_fn_cuLaunchCooperativeKernel);
  Variant variant = variant_of(call);
  (void)launcher().as_variant(Launch(call), variant);
  CHECK(received.entry == "cooperative");
  variant.attributes[variant.num_attributes++] = priority(-1);
  (void)launcher().as_variant(Launch(call), variant);
  CHECK(received.entry == "ex");
  REQUIRE(received.attributes.size() == 2);
  CHECK(received.attributes[0].id == CU_LAUNCH_ATTRIBUTE_PRIORITY);
  CHECK(received.attributes[1].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
  CHECK(received.attributes[1].value.cooperative == 1);
}

TEST_CASE("Attributes that are added keep the program's kind of stream", "[launch]") {
  const contextune_launch call = plain_call(contextune_fn_cuLaunchKernel_ptsz);
  Variant variant = variant_of(call);
  variant.attributes[variant.num_attributes++] = priority(-1);
  (void)launcher().as_variant(Launch(call), variant);
  CHECK(received.entry == "ex_ptsz");
  CHECK(received.stream == nullptr);
}

TEST_CASE("All of the program's attributes go on; one of the same id is replaced", "[launch]") {
  CUlaunchAttribute given[] = {cluster(2), priority(0)};
  CUlaunchConfig config{};
  config.gridDimX = 4;
  config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.blockDimX = 128;
  config.attrs = given;
  config.numAttrs = 2;
  const CUlaunchConfig before = config;
  contextune_launch call = plain_call(contextune_fn_cuLaunchKernelEx);
  call.config = &config;
  Variant variant = variant_of(call);
  variant.attributes[variant.num_attributes++] = priority(-3);
  (void)launcher().as_variant(Launch(call), variant);
  REQUIRE(received.attributes.size() == 2);
  CHECK(received.attributes[0].value.clusterDim.x == 2);
  CHECK(received.attributes[1].value.priority == -3);
  CHECK(std::memcmp(&before, &config, sizeof config) == 0);
  CHECK(given[1].value.priority == 0);
}

TEST_CASE("More attributes than there is room for are refused as a launch is", "[launch]") {
  std::vector<CUlaunchAttribute> given(64, priority(0));
  CUlaunchConfig config{};
  config.attrs = given.data();
  config.numAttrs = 64;
  contextune_launch call = plain_call(contextune_fn_cuLaunchKernelEx);
  call.config = &config;
  const CUresult result = launcher().as_variant(Launch(call), variant_of(call));
  CHECK(is_launch_config_error(result));
}

TEST_CASE("Padding of an attribute does not tell launches apart, its value does", "[launch]") {
  CUlaunchAttribute a;
  CUlaunchAttribute b;
  std::memset(&a, 0x11, sizeof a);
  std::memset(&b, 0x22, sizeof b);
  a.id = b.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  a.value.priority = b.value.priority = -1;
  const auto hash = [](CUlaunchAttribute& attribute) {
    CUlaunchConfig config{};
    config.attrs = &attribute;
    config.numAttrs = 1;
    contextune_launch call = plain_call(contextune_fn_cuLaunchKernelEx);
    call.config = &config;
    return LaunchKey(Launch(call)).attributes_hash;
  };
  CHECK(hash(a) == hash(b));
  b.value.priority = -2;
  CHECK(hash(a) != hash(b));
}

TEST_CASE("Default streams are told apart by the form of the entry point", "[launch]") {
  CHECK(Launch(plain_call()).stream == CU_STREAM_LEGACY);
  CHECK(Launch(plain_call(contextune_fn_cuLaunchKernel_ptsz)).stream == CU_STREAM_PER_THREAD);
}

TEST_CASE("Only errors that leave the context alone allow another launch", "[launch]") {
  for (const CUresult sticky : {CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_LAUNCH_FAILED,
                                CUDA_ERROR_LAUNCH_TIMEOUT, CUDA_ERROR_DEINITIALIZED}) {
    CHECK_FALSE(is_launch_config_error(sticky));
  }
  CHECK(is_launch_config_error(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES));
  CHECK(is_launch_config_error(CUDA_ERROR_INVALID_VALUE));
  CHECK(is_launch_config_error(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE));
  CHECK(is_sticky_error(CUDA_ERROR_ILLEGAL_ADDRESS));
  CHECK_FALSE(is_sticky_error(CUDA_ERROR_DEINITIALIZED));
}
