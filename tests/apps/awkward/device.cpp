#include "device.hpp"

#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <simcuda/kernel.hpp>
#include <vector>

#include "moments.hpp"

namespace awkward {
namespace {

using simcuda::argument;

bool results_drift = false;

void advance(const simcuda_launch* launch) {
  const auto n = argument<std::uint32_t>(*launch, 0);
  auto* const words = argument<std::uint32_t*>(*launch, 1);
  for (std::uint32_t i = 0; i < n; ++i) words[i] = words[i] * 3 + 1;
  static std::uint32_t number = 0;
  if (results_drift) words[0] += ++number;
  Moments::get().kernel_runs();
}

std::map<CUtexObject, CUdeviceptr> textures;

void look_up(const simcuda_launch* launch) {
  const auto n = argument<std::uint32_t>(*launch, 0);
  auto* const words = argument<std::uint32_t*>(*launch, 1);
  const auto texture = textures.find(argument<CUtexObject>(*launch, 2));
  if (texture == textures.end()) {
    std::puts("a kernel reads through a texture object that is gone");
    std::fflush(stdout);
    std::_Exit(1);
  }
  const auto* const texels = reinterpret_cast<const std::uint32_t*>(texture->second);
  for (std::uint32_t i = 0; i < n; ++i) words[i] += texels[n - 1 - i];
}

void describe(const simcuda_launch*, simcuda_work* work) {
  work->items = 10'000;
  work->flops = 1e8;
}

void register_kernel() {
  static constexpr simcuda_kernel kernel =
      simcuda::whole_launch_kernel<std::uint32_t, std::uint32_t*>("advance", &advance, &describe);
  static constexpr simcuda_kernel reading =
      simcuda::whole_launch_kernel<std::uint32_t, std::uint32_t*, CUtexObject>("look_up", &look_up,
                                                                               &describe);
  static constexpr const simcuda_kernel* list[] = {&kernel, &reading};
  static constexpr simcuda_kernel_table table{SIMCUDA_VERSION, list, 2};
  if (simcuda_register_kernels(&table) != 0) std::abort();
}

}  // namespace

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  cuGetErrorName(result, &name);
  std::printf("%s failed: %s\n", what, name == nullptr ? "?" : name);
  std::fflush(stdout);
  std::_Exit(1);
}

Device Device::open() {
  register_kernel();
  Device device;
  check(cuInit(0), "cuInit");
  check(cuDevicePrimaryCtxRetain(&device.context, 0), "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(device.context), "cuCtxSetCurrent");
  device.load_module();
  return device;
}

void Device::load_module() {
  advance = load_advance(module);
  check(cuModuleGetFunction(&look_up, module, "look_up"), "cuModuleGetFunction");
}

void Device::launch(CUdeviceptr memory, CUstream stream) const {
  awkward::launch(advance, memory, stream);
}

void let_results_drift() {
  results_drift = true;
}

CUfunction load_advance(CUmodule& module) {
  CUfunction function = nullptr;
  check(cuModuleLoadData(&module,
                         "simcuda image 1\nkernel advance\nkernel look_up\naccess advance 1=rw\n"),
        "cuModuleLoadData");
  check(cuModuleGetFunction(&function, module, "advance"), "cuModuleGetFunction");
  return function;
}

void launch(CUfunction advance, CUdeviceptr memory, CUstream stream) {
  std::uint32_t n = num_words;
  void* arguments[] = {&n, &memory};
  Moments::get().program_launches();
  check(cuLaunchKernel(advance, 4, 1, 1, 128, 1, 1, 0, stream, arguments, nullptr),
        "cuLaunchKernel");
}

void Device::launch_reading(CUtexObject texture, CUdeviceptr memory) const {
  std::uint32_t n = num_words;
  void* arguments[] = {&n, &memory, &texture};
  check(cuLaunchKernel(look_up, 4, 1, 1, 128, 1, 1, 0, nullptr, arguments, nullptr),
        "cuLaunchKernel");
}

void take_memory_but(std::size_t bytes) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  const std::size_t rest = free_bytes() / (2 * mebibyte) * (2 * mebibyte) - bytes;
  CUmemGenericAllocationHandle handle = 0;
  check(cuMemCreate(&handle, rest, &properties, 0), "cuMemCreate");
}

CUtexObject new_texture(CUdeviceptr memory) {
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_LINEAR;
  resource.res.linear = {memory, CU_AD_FORMAT_UNSIGNED_INT32, 1, num_bytes};
  const CUDA_TEXTURE_DESC description{};
  CUtexObject texture = 0;
  check(cuTexObjectCreate(&texture, &resource, &description, nullptr), "cuTexObjectCreate");
  textures[texture] = memory;
  return texture;
}

void destroy_texture(CUtexObject texture) {
  check(cuTexObjectDestroy(texture), "cuTexObjectDestroy");
  textures.erase(texture);
}

CUdeviceptr new_memory() {
  CUdeviceptr memory = 0;
  check(cuMemAlloc(&memory, num_bytes), "cuMemAlloc");
  check(cuMemsetD32(memory, 1, num_words), "cuMemsetD32");
  return memory;
}

CUstream new_stream() {
  CUstream stream = nullptr;
  check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  return stream;
}

std::uint32_t* new_host_word(CUdeviceptr& address) {
  void* memory = nullptr;
  check(cuMemHostAlloc(&memory, sizeof(std::uint32_t), CU_MEMHOSTALLOC_DEVICEMAP),
        "cuMemHostAlloc");
  check(cuMemHostGetDevicePointer(&address, memory, 0), "cuMemHostGetDevicePointer");
  auto* const word = static_cast<std::uint32_t*>(memory);
  *word = 0;
  return word;
}

std::size_t free_bytes() {
  std::size_t free = 0;
  std::size_t total = 0;
  check(cuMemGetInfo(&free, &total), "cuMemGetInfo");
  return free;
}

std::uint32_t digest(CUdeviceptr memory) {
  std::vector<std::uint32_t> words(num_words);
  check(cuMemcpyDtoH(words.data(), memory, num_bytes), "cuMemcpyDtoH");
  std::uint32_t sum = 0;
  for (const std::uint32_t word : words) sum = sum * 31 + word;
  return sum;
}

void print_memory(const char* name, CUdeviceptr memory) {
  check(cuCtxSynchronize(), "cuCtxSynchronize");
  std::printf("%s: %08x\n", name, digest(memory));
}

Range::Range(const char* name) {
  nvtxRangePushA(name);
}

Range::~Range() {
  nvtxRangePop();
}

}  // namespace awkward
