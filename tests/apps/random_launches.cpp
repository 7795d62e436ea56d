// Programs drawn at random whose kernels read what those before them wrote: on several streams and
// threads, with events, copies, graphs and captures. Each has one result, however its launches
// reach the driver, as all that depends on each other is ordered.
//   random_launches FIRST COUNT [unordered]
// prints the result of programs FIRST to FIRST + COUNT - 1. `unordered`: their kernels do not wait
// for each other, so results are wrong.
#include <cuda.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <simcuda/cubin.hpp>
#include <simcuda/kernel.hpp>

namespace {

using Word = std::uint32_t;
constexpr std::size_t words = 16;
constexpr std::size_t bytes = words * sizeof(Word);

bool unordered = false;

void must(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::printf("%s: %d\n", what, static_cast<int>(result));
  std::fflush(stdout);
  std::_Exit(3);
}

// What the kernels do, of a number, a buffer to write and a buffer to read.
template <typename Do>
void for_words(const simcuda_launch* launch, Do each) {
  const Word number = simcuda::argument<Word>(*launch, 0);
  auto* const to = simcuda::argument<Word*>(*launch, 1);
  const auto* const from = simcuda::argument<const Word*>(*launch, 2);
  for (std::size_t i = 0; i < words; ++i) each(number, to, from, i);
}
void mix(const simcuda_launch* launch) {
  for_words(launch, [](Word number, Word* to, const Word* from, std::size_t i) {
    to[i] = to[i] * 3 + from[i] + number;
  });
}
void set(const simcuda_launch* launch) {
  for_words(launch, [](Word number, Word* to, const Word* from, std::size_t i) {
    to[i] = from[i] ^ (number + static_cast<Word>(i));
  });
}
void turn(const simcuda_launch* launch) {
  for_words(launch, [](Word number, Word* to, const Word* from, std::size_t i) {
    to[i] += from[(i * 5 + number) % words] >> 1;
  });
}
void set_constant(const simcuda_launch* launch) {
  *simcuda::argument<Word*>(*launch, 1) +=
      simcuda::argument<const Word*>(*launch, 2)[0] + simcuda::argument<Word>(*launch, 0);
}
void add_constant(const simcuda_launch* launch) {
  const Word constant = *simcuda::global<Word>(*launch, "shared_constant");
  for_words(launch, [constant](Word number, Word* to, const Word*, std::size_t i) {
    to[i] = to[i] * 7 + constant + number;
  });
}
void describe(const simcuda_launch*, simcuda_work* work) {
  work->flops = 2e9;  // so that the GPU has work
}

simcuda_kernel kernel(const char* name, void (*run)(const simcuda_launch*)) {
  return simcuda::whole_launch_kernel<Word, Word*, const Word*>(name, run, &describe);
}

const std::array<const char*, 7> names = {
    "mix", "set", "turn", "turn_waiting", "mix_trigger", "set_constant", "add_constant"};

std::string image() {
  static const std::array<simcuda_kernel, 7> kernels = {
      kernel(names[0], &mix),         kernel(names[1], &set), kernel(names[2], &turn),
      kernel(names[3], &turn),        kernel(names[4], &mix), kernel(names[5], &set_constant),
      kernel(names[6], &add_constant)};
  static std::array<const simcuda_kernel*, 7> pointers;
  for (std::size_t i = 0; i < kernels.size(); ++i) pointers[i] = &kernels[i];
  static const simcuda_kernel_table table{SIMCUDA_VERSION, pointers.data(), pointers.size()};
  if (simcuda_register_kernels(&table) != 0) std::abort();
  std::vector<simcuda::CompiledKernel> compiled;
  for (const char* name : names) {
    simcuda::CompiledKernel one;
    one.name = name;
    one.waits = one.name == "turn_waiting";
    one.triggers = one.name == "mix_trigger" || one.name == "set_constant";
    one.uses_stack = one.name == "set";
    compiled.push_back(one);
  }
  return simcuda::build_cubin(compiled, "simcuda image 1\nconstant shared_constant 4");
}

/// What one thread of a program does.
class Part {
 public:
  Part(CUcontext context, const std::string& code, std::uint64_t seed) : random_(seed) {
    must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    must(cuModuleLoadData(&module_, code.data()), "cuModuleLoadData");
    for (std::size_t i = 0; i < names.size(); ++i)
      must(cuModuleGetFunction(&functions_[i], module_, names[i]), "cuModuleGetFunction");
    must(cuModuleGetGlobal(&constant_, nullptr, module_, "shared_constant"), "cuModuleGetGlobal");
    const Word one = 1;
    must(cuMemcpyHtoD(constant_, &one, sizeof one), "cuMemcpyHtoD");
    streams_[0].handle = CU_STREAM_LEGACY;
    for (std::size_t i = 1; i < streams_.size(); ++i) {
      must(cuStreamCreate(&streams_[i].handle, i == 1 ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING),
           "cuStreamCreate");
    }
    must(cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    for (CUdeviceptr& one_buffer : shared_) one_buffer = buffer();
    for (Stream& stream : streams_)
      for (CUdeviceptr& one_buffer : stream.own) one_buffer = buffer();
    wait_for_all();
  }

  void run() {
    for (std::size_t block = below(3) + 1; block > 0; --block) {
      // A program repeats itself, with other numbers.
      const auto steps = static_cast<std::uint64_t>(random_());
      const std::size_t length = below(6) + 1;
      for (std::size_t turns = below(6) + 1; turns > 0; --turns) {
        steps_.seed(steps);
        for (std::size_t i = 0; i < length; ++i) step();
      }
    }
  }

  /// Of all that it computed; gives everything back.
  Word result() {
    wait_for_all();
    Word sum = 17;
    for (const CUdeviceptr one : buffers_) {
      std::array<Word, words> values{};
      must(cuMemcpyDtoH(values.data(), one, bytes), "cuMemcpyDtoH");
      for (const Word value : values) sum = (sum ^ value) * 16777619U;
      must(cuMemFree(one), "cuMemFree");
    }
    must(cuEventDestroy(event_), "cuEventDestroy");
    for (std::size_t i = 1; i < streams_.size(); ++i)
      must(cuStreamDestroy(streams_[i].handle), "cuStreamDestroy");
    must(cuModuleUnload(module_), "cuModuleUnload");
    return sum;
  }

 private:
  struct Stream {
    CUstream handle = nullptr;
    std::array<CUdeviceptr, 2> own{};
  };

  std::size_t below(std::size_t n) { return random_() % n; }
  std::size_t drawn(std::size_t n) { return steps_() % n; }

  CUdeviceptr buffer() {
    CUdeviceptr made = 0;
    must(cuMemAlloc(&made, bytes), "cuMemAlloc");
    must(cuMemsetD32(made, static_cast<unsigned>(buffers_.size() + 1), words), "cuMemsetD32");
    buffers_.push_back(made);
    return made;
  }

  /// Not for the context: another thread may capture.
  void wait_for_all() {
    for (const Stream& one : streams_) must(cuStreamSynchronize(one.handle), "synchronise");
  }

  void step() {
    const std::size_t on = drawn(streams_.size());
    const std::size_t what = drawn(20);
    if (what < 9) return burst(on, drawn(40) + 1);
    if (what < 12) return move_to(on);
    switch (what) {
      case 12:
        return must(cuMemcpyDtoDAsync(pick(on), pick(on), bytes, streams_[on].handle), "copy");
      case 13:
        return must(cuMemsetD32Async(pick(on), number_++, words, streams_[on].handle), "set");
      case 14: {
        std::array<Word, words> values{};
        values.fill(number_++);
        must(cuMemcpyHtoDAsync(pick(on), values.data(), bytes, streams_[on].handle), "upload");
        values.fill(0);
        return;
      }
      case 15:
        return must(cuStreamSynchronize(streams_[on].handle), "synchronise");
      case 16:
        (void)cuStreamQuery(streams_[on].handle);
        return;
      case 17:
        return must(cuEventRecord(event_, streams_[on].handle), "record");
      default:
        return captured(on < 2 ? 2 : on);
    }
  }

  /// The shared buffers belong to one stream at a time.
  void move_to(std::size_t on) {
    const CUstream from = streams_[holder_].handle;
    const std::size_t way = drawn(3);
    if (holder_ == on) return;
    if (holder_ + on == 1 && way == 0) {
      // The legacy stream and a blocking one wait for each other.
    } else if (way == 1) {
      must(cuStreamSynchronize(from), "synchronise");
    } else {
      must(cuEventRecord(event_, from), "record");
      must(cuStreamWaitEvent(streams_[on].handle, event_, 0), "wait");
    }
    holder_ = on;
  }

  CUdeviceptr pick(std::size_t on) {
    const std::size_t which = drawn(holder_ == on ? 5 : 2);
    return which < 2 ? streams_[on].own[which] : shared_[which - 2];
  }

  void burst(std::size_t on, std::size_t launches) {
    for (; launches > 0; --launches) launch(on);
  }

  void launch(std::size_t on) {
    std::size_t which = drawn(holder_ == on ? names.size() : 5);
    CUdeviceptr to = pick(on);
    CUdeviceptr from = pick(on);
    if (which == 5) to = constant_;
    Word number = number_++;
    void* arguments[] = {&number, &to, &from};
    CUlaunchAttribute attribute{};
    attribute.id = unordered ? CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
                             : CU_LAUNCH_ATTRIBUTE_PRIORITY;
    if (unordered) attribute.value.programmaticStreamSerializationAllowed = 1;
    const std::size_t form = drawn(12);
    if (unordered || form == 0) {
      CUlaunchConfig config{};
      config.gridDimX = static_cast<unsigned>(drawn(2) + 1);
      config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
      config.blockDimX = 32;
      config.hStream = streams_[on].handle;
      config.attrs = &attribute;
      config.numAttrs = 1;
      must(cuLaunchKernelEx(&config, functions_[which], arguments, nullptr), "launch");
    } else {
      must(cuLaunchKernel(functions_[which], static_cast<unsigned>(drawn(2) + 1), 1, 1, 32, 1, 1, 0,
                          streams_[on].handle, arguments, nullptr),
           "launch");
    }
    number = 0;
    to = from = 0;
  }

  [[nodiscard]] CUgraph recorded(std::size_t on, std::size_t launches) {
    CUgraph graph = nullptr;
    const CUstream stream = streams_[on].handle;
    must(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), "capture");
    burst(on, launches);
    must(cuStreamEndCapture(stream, &graph), "end of a capture");
    return graph;
  }

  /// Other arguments, another kernel, an update by a graph recorded anew, a kernel less or more.
  void change(CUgraphExec exec, CUgraph graph, std::size_t on) {
    std::array<CUgraphNode, 8> nodes{};
    std::size_t count = nodes.size();
    must(cuGraphGetNodes(graph, nodes.data(), &count), "nodes");
    const CUgraphNode node = nodes[drawn(count)];
    switch (drawn(5)) {
      case 0: {
        CUDA_KERNEL_NODE_PARAMS params{};
        must(cuGraphKernelNodeGetParams(node, &params), "parameters of a node");
        CUdeviceptr to = pick(on);
        CUdeviceptr from = pick(on);
        Word number = number_++;
        void* arguments[] = {&number, &to, &from};
        params.func = functions_[drawn(5)];
        params.kernelParams = arguments;
        must(cuGraphExecKernelNodeSetParams(exec, node, &params), "set of a node");
        return;
      }
      case 1: {
        const CUgraph other = recorded(on, count);
        CUgraphExecUpdateResultInfo info{};
        must(cuGraphExecUpdate(exec, other, &info), "update");
        must(cuGraphDestroy(other), "destroy");
        return;
      }
      case 2:
        must(cuGraphNodeSetEnabled(exec, node, static_cast<unsigned>(drawn(2))), "enable");
        return;
      case 3:
        must(cuGraphUpload(exec, streams_[on].handle), "upload");
        return;
      default:
        return;
    }
  }

  void captured(std::size_t on) {
    const CUgraph graph = recorded(on, drawn(5) + 1);
    CUgraphExec exec = nullptr;
    must(cuGraphInstantiate(&exec, graph, 0), "instantiate");
    for (std::size_t times = drawn(4) + 1; times > 0; --times) {
      must(cuGraphLaunch(exec, streams_[on].handle), "launch of a graph");
      burst(on, drawn(3));
      change(exec, graph, on);
    }
    must(cuGraphExecDestroy(exec), "destroy");
    must(cuGraphDestroy(graph), "destroy");
  }

  std::mt19937_64 random_;
  std::mt19937_64 steps_;
  CUmodule module_ = nullptr;
  std::array<CUfunction, names.size()> functions_{};
  CUdeviceptr constant_ = 0;
  CUevent event_ = nullptr;
  std::array<Stream, 4> streams_;
  std::array<CUdeviceptr, 3> shared_{};
  std::vector<CUdeviceptr> buffers_;
  std::size_t holder_ = 2;
  Word number_ = 1;
};

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t first = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 0;
  const std::uint64_t count = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 100;
  unordered = argc > 3 && std::strcmp(argv[3], "unordered") == 0;
  CUcontext context = nullptr;
  must(cuInit(0), "cuInit");
  must(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
  must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  const std::string code = image();
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    std::array<Word, 2> results{};
    const auto run = [&](std::size_t part) {
      Part one(context, code, seed * 2 + part);
      one.run();
      results[part] = one.result();
    };
    if (seed % 3 == 0) {
      std::thread other(run, 1);
      run(0);
      other.join();
    } else {
      run(0);
    }
    std::printf("program %llu: %08x %08x\n", static_cast<unsigned long long>(seed), results[0],
                results[1]);
  }
  return 0;
}
