// A program in machine code whose launches repeat, or do not.
//   repeating_launches STEPS short  so many times the same eight launches
//   repeating_launches STEPS long   with kernels beside which no launch takes time
//   repeating_launches STEPS never  as many, in an order that never repeats
//   repeating_launches STEPS forks  with children that end at once
//   repeating_launches STEPS window, copied  in a stream that after two steps gets a window in L2,
//                                   or the memory domain of another one
//   repeating_launches STEPS resets with all of it again in several contexts, which go without an
//                                   unload, or with a module that goes while launches are under way
// prints one number that depends on the order of all of them.
#include <cuda.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <simcuda/cubin.hpp>
#include <simcuda/kernel.hpp>

namespace {

using Word = std::uint32_t;

void must(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::printf("%s: %d\n", what, static_cast<int>(result));
  std::exit(3);
}

double flops = 1e6;

template <Word Factor>
void step(const simcuda_launch* launch) {
  auto* const value = simcuda::argument<Word*>(*launch, 1);
  *value = *value * Factor + simcuda::argument<Word>(*launch, 0);
}

void describe(const simcuda_launch*, simcuda_work* work) {
  work->flops = flops;
}

const std::array<const char*, 4> names = {"advect", "diffuse", "project", "reduce"};

std::string image() {
  static const std::array<simcuda_kernel, 4> kernels = {
      simcuda::whole_launch_kernel<Word, Word*>(names[0], &step<3>, &describe),
      simcuda::whole_launch_kernel<Word, Word*>(names[1], &step<5>, &describe),
      simcuda::whole_launch_kernel<Word, Word*>(names[2], &step<7>, &describe),
      simcuda::whole_launch_kernel<Word, Word*>(names[3], &step<9>, &describe)};
  static const std::array<const simcuda_kernel*, 4> pointers = {&kernels[0], &kernels[1],
                                                                &kernels[2], &kernels[3]};
  static const simcuda_kernel_table table{SIMCUDA_VERSION, pointers.data(), pointers.size()};
  if (simcuda_register_kernels(&table) != 0) std::abort();
  std::vector<simcuda::CompiledKernel> compiled;
  for (const char* name : names) {
    compiled.emplace_back();
    compiled.back().name = name;
  }
  return simcuda::build_cubin(compiled);
}

void fork_and_wait() {
  const pid_t child = fork();
  if (child == 0) std::exit(0);  // with what exit() calls
  int status = 1;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
    std::printf("a child ended with %d\n", status);
    std::exit(3);
  }
}

void change(CUstream stream, std::string_view kind, CUdeviceptr value) {
  CUstreamAttrValue changed{};
  if (kind == "window") {
    changed.accessPolicyWindow.base_ptr = reinterpret_cast<void*>(value);
    changed.accessPolicyWindow.num_bytes = sizeof(Word);
    must(cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &changed),
         "cuStreamSetAttribute");
  } else if (kind == "copied") {
    CUstream other = nullptr;
    must(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    changed.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
    must(cuStreamSetAttribute(other, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &changed),
         "cuStreamSetAttribute");
    must(cuStreamCopyAttributes(stream, other), "cuStreamCopyAttributes");
  }
}

/// All in a context of its own. @return what came out
Word run(int steps, std::string_view kind, const std::string& code, int round) {
  CUcontext context = nullptr;
  must(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
  must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  CUmodule module = nullptr;
  must(cuModuleLoadData(&module, code.data()), "cuModuleLoadData");
  std::array<CUfunction, names.size()> kernels{};
  for (std::size_t i = 0; i < names.size(); ++i)
    must(cuModuleGetFunction(&kernels[i], module, names[i]), "cuModuleGetFunction");
  CUdeviceptr value = 0;
  must(cuMemAlloc(&value, sizeof(Word)), "cuMemAlloc");
  must(cuMemsetD32(value, 1, 1), "cuMemsetD32");
  CUstream stream = nullptr;
  must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  must(cuCtxSynchronize(), "cuCtxSynchronize");
  const bool never = kind == "never";
  std::mt19937 random(1);
  Word number = static_cast<Word>(round);
  for (int i = 0; i < steps; ++i) {
    for (std::size_t k = 0; k < 8; ++k) {
      const std::size_t which = never ? random() % names.size() : k % names.size();
      const unsigned grid = never ? 1U << random() % 12 : (k < 4 ? 4 : 64);
      ++number;
      void* arguments[] = {&number, &value};
      must(cuLaunchKernel(kernels[which], grid, 1, 1, 64, 1, 1, 0, stream, arguments, nullptr),
           "cuLaunchKernel");
    }
    if (i == 1) change(stream, kind, value);
    if (kind == "forks" && i % 16 == 15) fork_and_wait();
    if (i % 256 == 255) must(cuStreamSynchronize(stream), "cuStreamSynchronize");
  }
  if (kind == "resets" && round % 2 == 0) {
    must(cuModuleUnload(module), "cuModuleUnload");
    must(cuStreamDestroy(stream), "cuStreamDestroy");
    must(cuCtxSynchronize(), "cuCtxSynchronize");
  } else {
    must(cuStreamSynchronize(stream), "cuStreamSynchronize");
  }
  must(cuMemcpyDtoH(&number, value, sizeof number), "cuMemcpyDtoH");
  if (kind == "resets") must(cuDevicePrimaryCtxReset(0), "cuDevicePrimaryCtxReset");
  return number;
}

}  // namespace

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 100;
  const std::string_view kind = argc > 2 ? argv[2] : "short";
  if (kind == "long") flops = 3e10;
  must(cuInit(0), "cuInit");
  const std::string code = image();
  for (int round = 0; round < (kind == "resets" ? 10 : 1); ++round)
    std::printf("%08x\n", run(steps, kind, code, round));
  return 0;
}
