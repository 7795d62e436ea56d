// A program in machine code whose launches repeat, or do not.
//   repeating_launches STEPS short  so many times the same eight launches
//   repeating_launches STEPS long   with kernels beside which no launch takes time
//   repeating_launches STEPS crowded with a kernel that takes longer where it was prepared early
//   repeating_launches STEPS layers eight times the same eleven launches, which take almost a
//                                   millisecond, and then a few others
//   repeating_launches STEPS large  with more machine code than a first run may read
//   repeating_launches STEPS never  as many, in an order that never repeats
//   repeating_launches STEPS forks  with children that end at once
//   repeating_launches STEPS window, copied  in a stream that after two steps gets a window in L2,
//                                   or the memory domain of another one
//   repeating_launches STEPS resets with all of it again in several contexts, which go without an
//                                   unload, or with a module that goes while launches are under way
//   repeating_launches STEPS mixed       the same kernel three times, a graph, a copy and a wait
//   repeating_launches STEPS graphs      a graph only, and a copy after every fourth
//   repeating_launches STEPS ahead       a long graph, launched far ahead, and at times a copy and
//   other launches repeating_launches STEPS irregular   the same kernel, with waits that come at
//   random repeating_launches STEPS threads     three threads of which each repeats the eight
//   launches repeating_launches STEPS relay       three such threads, one after the other
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
#include <thread>
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
double early_seconds = 0;

template <Word Factor>
void step(const simcuda_launch* launch) {
  auto* const value = simcuda::argument<Word*>(*launch, 1);
  *value = *value * Factor + simcuda::argument<Word>(*launch, 0);
}

void describe(const simcuda_launch*, simcuda_work* work) {
  work->flops = flops;
}

void describe_diffuse(const simcuda_launch* launch, simcuda_work* work) {
  describe(launch, work);
  work->early_seconds = early_seconds;
}

const std::array<const char*, 4> names = {"advect", "diffuse", "project", "reduce"};

std::string image(bool large) {
  static const std::array<simcuda_kernel, 4> kernels = {
      simcuda::whole_launch_kernel<Word, Word*>(names[0], &step<3>, &describe),
      simcuda::whole_launch_kernel<Word, Word*>(names[1], &step<5>, &describe_diffuse),
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
    constexpr unsigned many = 36 * ((1U << 20U) / 16);  // 36 MiB
    if (large && name == names[0]) compiled.back().padding = many;
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

struct Code {
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  std::array<CUfunction, names.size()> kernels{};
};

Code load(const std::string& image) {
  Code code;
  must(cuDevicePrimaryCtxRetain(&code.context, 0), "cuDevicePrimaryCtxRetain");
  must(cuCtxSetCurrent(code.context), "cuCtxSetCurrent");
  must(cuModuleLoadData(&code.module, image.data()), "cuModuleLoadData");
  for (std::size_t i = 0; i < names.size(); ++i)
    must(cuModuleGetFunction(&code.kernels[i], code.module, names[i]), "cuModuleGetFunction");
  return code;
}

/// One stream, and the value that its launches change one after the other.
class Work {
 public:
  Work(const Code& code, std::size_t round) : code_(code), number_(static_cast<Word>(round)) {
    must(cuCtxSetCurrent(code.context), "cuCtxSetCurrent");
    must(cuMemAlloc(&value_, sizeof(Word)), "cuMemAlloc");
    must(cuMemsetD32(value_, 1, 1), "cuMemsetD32");
    must(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    must(cuCtxSynchronize(), "cuCtxSynchronize");
  }

  void launch(std::size_t kernel, unsigned grid) {
    ++number_;
    void* arguments[] = {&number_, &value_};
    must(
        cuLaunchKernel(code_.kernels[kernel], grid, 1, 1, 64, 1, 1, 0, stream_, arguments, nullptr),
        "cuLaunchKernel");
  }
  void wait() { must(cuStreamSynchronize(stream_), "cuStreamSynchronize"); }
  void copy() { must(cuMemcpyDtoH(&seen_, value_, sizeof seen_), "cuMemcpyDtoH"); }
  CUgraphExec graph() {
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
    must(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED), "cuStreamBeginCapture");
    for (int i = 0; i < 3; ++i) launch(3, 4);
    must(cuStreamEndCapture(stream_, &graph), "cuStreamEndCapture");
    must(cuGraphInstantiate(&executable, graph, 0), "cuGraphInstantiate");
    return executable;
  }
  void launch(CUgraphExec graph) { must(cuGraphLaunch(graph, stream_), "cuGraphLaunch"); }
  void change_stream(std::string_view kind) { change(stream_, kind, value_); }
  void end() { must(cuStreamDestroy(stream_), "cuStreamDestroy"); }
  Word result() {
    copy();
    return seen_;
  }

 private:
  const Code& code_;
  Word number_;
  Word seen_ = 0;
  CUdeviceptr value_ = 0;
  CUstream stream_ = nullptr;
};

/// The same eight launches, step by step.
Word repeat(Work work, int steps) {
  for (int i = 0; i < steps; ++i) {
    for (std::size_t k = 0; k < 8; ++k) work.launch(k % names.size(), k < 4 ? 4 : 64);
    if (i % 256 == 255) work.wait();
  }
  work.wait();
  return work.result();
}

/// No launches beside those of a graph of several kernels.
Word repeat_graph(Work work, int steps, bool ahead) {
  const CUgraphExec graph = work.graph();
  for (int i = 0; i < steps; ++i) {
    work.launch(graph);
    if (ahead ? i % 50 != 49 : i % 4 != 3) continue;
    work.copy();
    for (int k = 0; ahead && k < 12; ++k) work.launch(0, 4);
  }
  work.wait();
  return work.result();
}

/// With other steps than launches, without which it is the same kernel all the time.
Word mix(Work work, int steps, bool regularly) {
  const CUgraphExec graph = work.graph();
  std::mt19937 random(1);
  for (int i = 0; i < steps; ++i) {
    for (int k = 0; k < 3; ++k) work.launch(0, 4);
    if (regularly) {
      work.launch(graph);
      work.copy();
      work.wait();
    } else if (random() % 4 == 0) {
      work.wait();
    }
  }
  work.wait();
  return work.result();
}

/// What repeats inside of a step does so a few times only.
Word repeat_layers(Work work, int steps) {
  for (int i = 0; i < steps; ++i) {
    for (int layer = 0; layer < 8; ++layer)
      for (std::size_t k = 0; k < 11; ++k) work.launch(k % names.size(), k < 4 ? 4 : 64);
    for (int k = 0; k < 5; ++k) work.launch(3, 8);
    work.copy();
  }
  return work.result();
}

Word in_threads(const Code& code, int steps, bool at_once) {
  constexpr std::size_t num_threads = 3;
  std::array<Word, num_threads> results{};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < num_threads; ++i) {
    threads.emplace_back([&, i] { results[i] = repeat(Work(code, i), steps); });
    if (!at_once) threads.back().join();
  }
  Word all = 0;
  for (std::size_t i = 0; i < num_threads; ++i) {
    if (at_once) threads[i].join();
    all = all * 31 + results[i];
  }
  return all;
}

/// All in a context of its own. @return what came out
Word run(int steps, std::string_view kind, const std::string& image, std::size_t round) {
  const Code code = load(image);
  if (kind == "mixed" || kind == "irregular") return mix(Work(code, 0), steps, kind == "mixed");
  if (kind == "graphs" || kind == "ahead")
    return repeat_graph(Work(code, 0), steps, kind == "ahead");
  if (kind == "layers") return repeat_layers(Work(code, 0), steps);
  if (kind == "threads" || kind == "relay") return in_threads(code, steps, kind == "threads");
  Work work(code, round);
  const bool never = kind == "never";
  std::mt19937 random(1);
  for (int i = 0; i < steps; ++i) {
    for (std::size_t k = 0; k < 8; ++k) {
      const std::size_t which = never ? random() % names.size() : k % names.size();
      work.launch(which, never ? 1U << random() % 12 : (k < 4 ? 4 : 64));
    }
    if (i == 1) work.change_stream(kind);
    if (kind == "forks" && i % 16 == 15) fork_and_wait();
    if (i % 256 == 255) work.wait();
  }
  if (kind == "resets" && round % 2 == 0) {
    must(cuModuleUnload(code.module), "cuModuleUnload");
    work.end();
    must(cuCtxSynchronize(), "cuCtxSynchronize");
  } else {
    work.wait();
  }
  const Word result = work.result();
  if (kind == "resets") must(cuDevicePrimaryCtxReset(0), "cuDevicePrimaryCtxReset");
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 100;
  const std::string_view kind = argc > 2 ? argv[2] : "short";
  if (kind == "long") flops = 3e10;
  if (kind == "ahead") flops = 1e8;
  if (kind == "layers") flops = 9.5e7;
  if (kind == "crowded") {
    flops = 4e6;  // longer than the host takes to launch it
    early_seconds = 2e-6;
  }
  must(cuInit(0), "cuInit");
  const std::string code = image(kind == "large");
  for (std::size_t round = 0; round < (kind == "resets" ? 10 : 1); ++round)
    std::printf("%08x\n", run(steps, kind, code, round));
  return 0;
}
