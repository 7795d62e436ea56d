// Ranks that do an operation together which has several implementations. Prints a hash of what is
// left, which is the same whatever ran.
//   choice_ranks PATH WHERE [WORD...]
// WHERE: alone (outside of a region), region (in one that is repeated) or live. Words, of the ranks
// whose number follows:
//   wrong R       its fastest implementation computes something else there
//   unsupported R says that it cannot do it
//   throws R      its fastest implementation throws, while those of the others wait for it
//   dies R        ends in its fastest implementation
//   absent R      does the operation without asking
//   kernels -1    no implementation waits for another rank
#include <cuda.h>
#include <nccl.h>
#include <simcuda/kernel.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <contextune/contextune.hpp>

#include "rank_meeting.hpp"

namespace {

using contextune::Config;

constexpr std::size_t num_elements = 1024;
constexpr std::size_t num_bytes = num_elements * sizeof(unsigned);

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "%s failed: %d\n", what, static_cast<int>(result));
  std::_Exit(1);
}
void check(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  std::fprintf(stderr, "%s failed: %s\n", what, ncclGetErrorString(result));
  std::_Exit(1);
}
#define CHECK(call) check(call, #call)

void more(const simcuda::Thread& thread, int n, unsigned value, unsigned* y) {
  for (std::size_t i = thread.global_x(); i < static_cast<std::size_t>(n); i += thread.stride_x())
    y[i] += value;
}
void describe_more(const simcuda_launch* launch, simcuda_work* work) {
  work->block_cycles = launch->block[0] == 128 ? 50e3 : launch->block[0] == 64 ? 200e3 : 800e3;
}
const simcuda_kernel more_kernel = simcuda::per_thread_kernel<&more>("more", &describe_more);

/// What the words say, of each the rank that it is about.
struct Wanted {
  std::string path, where;
  std::map<std::string, int> words;
  int rank = 0;
  [[nodiscard]] bool says(const char* word) const {
    const auto found = words.find(word);
    return found != words.end() && (found->second == rank || found->second < 0);
  }
};

CUfunction load() {
  static const simcuda_kernel* const kernels[] = {&more_kernel};
  static const simcuda_kernel_table table{SIMCUDA_VERSION, kernels, 1};
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CHECK(cuInit(0));
  if (simcuda_register_kernels(&table) != 0) std::_Exit(1);
  CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuModuleLoadData(&module, "simcuda image 1\nkernel more\n"));
  CHECK(cuModuleGetFunction(&function, module, "more"));
  return function;
}

class Operation {
 public:
  Operation(const Wanted& wanted, const Place& place) : wanted_(wanted), place_(place) {
    CHECK(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    CHECK(cuMemAlloc(&in_, num_bytes));
    CHECK(cuMemAlloc(&out_, num_bytes));
    CHECK(cuMemsetD32(in_, static_cast<unsigned>(place.rank + 1), num_elements));
    CHECK(cuMemsetD32(out_, 0, num_elements));
    communicator_ = communicator(".first");
    other_ = communicator(".other");
  }

  /// out = sum of all in, plus 7.
  void with(ncclComm_t communicator, unsigned block, unsigned value = 7) {
    if (wanted_.says("kernels")) {
      CHECK(cuMemcpyDtoDAsync(out_, in_, num_bytes, stream_));
    } else {
      const ncclResult_t result =
          ncclAllReduce(reinterpret_cast<const void*>(in_), reinterpret_cast<void*>(out_),
                        num_elements, ncclUint32, ncclSum, communicator, stream_);
      // Of a communicator that was aborted meanwhile.
      if (result != ncclSuccess && communicator == other_) throw std::runtime_error("aborted");
      check(result, "ncclAllReduce");
    }
    int n = num_elements;
    CUdeviceptr y = out_;
    void* arguments[] = {&n, &value, &y};
    CHECK(cuLaunchKernel(function_, 1, 1, 1, block, 1, 1, 0, stream_, arguments, nullptr));
  }

  void run() {
    contextune::Choice<void()> sum("sum", {.ranks = place_.ranks, .n_repeat = 2});
    contextune::ImplementationOptions fastest;
    if (wanted_.says("unsupported"))
      fastest.supports = [](const contextune::Problem&) { return false; };
    fastest.abandon = [this] { CHECK(ncclCommAbort(other_)); };
    sum.size([] { return num_bytes; })
        .buffers([this] {
          return contextune::ChoiceMemory{{{reinterpret_cast<void*>(out_), num_bytes}},
                                          {{reinterpret_cast<void*>(in_), num_bytes}}};
        })
        .add("plain", [this](const Config&) { with(communicator_, 256); })
        .add(
            "fastest", [this](const Config&) { with_fastest(); }, fastest)
        .add("better", [this](const Config&) { with(communicator_, 64); });
    for (int i = 0; i < 3; ++i) {
      if (wanted_.says("absent")) {
        with(communicator_, 256);
      } else if (wanted_.where == "alone") {
        sum();
      } else {
        CONTEXTUAL_AUTOTUNE("sums", {.repeatable = wanted_.where == "region"}) {
          sum();
        }
      }
      CHECK(cuStreamSynchronize(stream_));
    }
    std::printf("rank %d: %016llx\n", place_.rank, static_cast<unsigned long long>(hash()));
  }

 private:
  ncclComm_t communicator(const char* name) const {
    ncclUniqueId id{};
    ncclComm_t made = nullptr;
    if (place_.rank == 0) CHECK(ncclGetUniqueId(&id));
    share_id(place_, wanted_.path + name, id);
    CHECK(ncclCommInitRank(&made, place_.ranks, id, place_.rank));
    return made;
  }

  void with_fastest() {
    if (wanted_.says("throws")) throw std::runtime_error("not here");
    if (wanted_.says("dies")) std::_Exit(0);
    with(other_, 128, wanted_.says("wrong") ? 8 : 7);
  }

  [[nodiscard]] std::uint64_t hash() const {
    std::uint64_t hash = 14695981039346656037ULL;
    std::vector<unsigned> values(num_elements);
    CHECK(cuMemcpyDtoH(values.data(), out_, num_bytes));
    for (const unsigned value : values) hash = (hash ^ value) * 1099511628211ULL;
    return hash;
  }

  const Wanted& wanted_;
  const Place place_;
  CUfunction function_ = load();
  CUstream stream_ = nullptr;
  CUdeviceptr in_ = 0, out_ = 0;
  ncclComm_t communicator_ = nullptr;
  ncclComm_t other_ = nullptr;  ///< of the fastest
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const Place place = place_of_this_process();
  Wanted wanted;
  wanted.path = argv[1];
  wanted.where = argv[2];
  wanted.rank = place.rank;
  for (int i = 3; i + 1 < argc; i += 2) wanted.words[argv[i]] = std::atoi(argv[i + 1]);
  Operation(wanted, place).run();
  return 0;
}
