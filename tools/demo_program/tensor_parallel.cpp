// An ordinary program on the CUDA driver API and NCCL: one of several processes that share the
// layers of a toy transformer out, each on a GPU of its own. What they compute in parts is summed,
// scattered and gathered on one stream while another goes on computing. It marks each step with the
// NVTX range "step" and knows nothing of tuning. The checksums, on standard output, are the same on
// all ranks and however fast it runs; the time of a step goes to standard error.
#include <cuda.h>
#include <nccl.h>
#include <nvtx3/nvToolsExt.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "rank_meeting.hpp"

namespace {

constexpr unsigned width = 1024;
constexpr unsigned taps = 8;
constexpr unsigned chunks = 4;  // of the tokens, to overlap computing with summing
constexpr int layers = 2;
constexpr int slots = 4;

// The launch shapes were tuned once, on a GPU with this many SMs.
constexpr unsigned tuned_for_sms = 80;

struct Options {
  int steps = 200;
  unsigned tokens = 1024;
  std::string meet;
  int straggler = -1;
  std::chrono::milliseconds late{0};
};

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  cuGetErrorName(result, &name);
  std::fprintf(stderr, "tensor_parallel: %s failed: %s (%d)\n", what, name == nullptr ? "?" : name,
               static_cast<int>(result));
  std::exit(1);
}
void check(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  std::fprintf(stderr, "tensor_parallel: %s failed: %s\n", what, ncclGetErrorString(result));
  std::exit(1);
}

std::string beside_the_executable(const char* file) {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  const std::string executable(path, length > 0 ? static_cast<std::size_t>(length) : 0);
  return executable.substr(0, executable.rfind('/') + 1) + file;
}

// Device memory with numbers from -127 to 127 that look random and are the same everywhere; with
// seed 0 it is zeros.
CUdeviceptr device_numbers(std::size_t count, std::uint32_t seed) {
  std::vector<int> values(count);
  for (int& value : values) {
    if (seed == 0) break;
    seed = seed * 1664525U + 1013904223U;
    value = static_cast<int>((seed >> 8) % 255) - 127;
  }
  CUdeviceptr memory = 0;
  check(cuMemAlloc(&memory, count * sizeof(int)), "cuMemAlloc");
  check(cuMemcpyHtoD(memory, values.data(), count * sizeof(int)), "cuMemcpyHtoD");
  return memory;
}

CUdeviceptr at(CUdeviceptr memory, std::size_t element) {
  return memory + element * sizeof(int);
}
void* pointer(CUdeviceptr memory) {
  return reinterpret_cast<void*>(memory);
}

// One stream, and where another one may wait for it.
class Lane {
 public:
  Lane() {
    check(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    check(cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
  }
  [[nodiscard]] CUstream stream() const { return stream_; }
  void wait_for(const Lane& other) const {
    check(cuEventRecord(other.event_, other.stream_), "cuEventRecord");
    check(cuStreamWaitEvent(stream_, other.event_, 0), "cuStreamWaitEvent");
  }

 private:
  CUstream stream_ = nullptr;
  CUevent event_ = nullptr;
};

class Transformer {
 public:
  Transformer(CUmodule module, const Place& place, ncclComm_t comm, unsigned tokens)
      : comm_(comm),
        tokens_(tokens),
        part_(width / static_cast<unsigned>(place.ranks)),
        part_begin_(static_cast<int>(part_) * place.rank),
        own_tokens_(tokens / static_cast<unsigned>(place.ranks)),
        first_own_(std::size_t{own_tokens_} * static_cast<unsigned>(place.rank) * width),
        expand_(function(module, "expand")),
        contract_(function(module, "contract")),
        settle_(function(module, "settle")),
        mix_(function(module, "mix")),
        remember_(function(module, "remember")),
        normalise_(function(module, "normalise")),
        x_(device_numbers(std::size_t{tokens} * width, 1)),
        hidden_(device_numbers(std::size_t{tokens} * part_, 0)),
        y_(device_numbers(std::size_t{tokens} * width, 0)),
        sums_(device_numbers(std::size_t{tokens} * width, 0)),
        past_(device_numbers(std::size_t{tokens} * width * slots, 0)) {
    const auto seed = static_cast<std::uint32_t>(place.rank) + 2;
    in_weights_ = device_numbers(std::size_t{part_} * taps, 3 * seed);
    out_weights_ = device_numbers(std::size_t{width} * taps, 3 * seed + 1);
    mix_weights_ = device_numbers(std::size_t{width} * taps, 3 * seed + 2);
  }

  void step(int number) {
    nvtxRangePushA("step");
    for (int layer = 0; layer < layers; ++layer) {
      feed_forward();
      mix_tokens(number * layers + layer);
    }
    nvtxRangePop();
  }

  [[nodiscard]] CUstream stream() const { return compute_.stream(); }

  // FNV-1a over x and its past.
  [[nodiscard]] std::uint64_t checksum() const {
    check(cuStreamSynchronize(compute_.stream()), "cuStreamSynchronize");
    std::uint64_t hash = 14695981039346656037ULL;
    add_to(hash, x_, std::size_t{tokens_} * width);
    add_to(hash, past_, std::size_t{tokens_} * width * slots);
    return hash;
  }

 private:
  // Each rank has some of the hidden columns. The sums over ranks of one chunk of tokens travel
  // while the next one is computed.
  void feed_forward() {
    unsigned rows = tokens_ / chunks;
    unsigned hidden_count = rows * part_;
    unsigned count = rows * width;
    int columns = width;
    int part = static_cast<int>(part_);
    for (unsigned chunk = 0; chunk < chunks; ++chunk) {
      CUdeviceptr x = at(x_, std::size_t{chunk} * count);
      CUdeviceptr hidden = at(hidden_, std::size_t{chunk} * hidden_count);
      CUdeviceptr y = at(y_, std::size_t{chunk} * count);
      void* expand[] = {&hidden_count, &columns, &part, &part_begin_, &in_weights_, &x, &hidden};
      launch(expand_, 2 * tuned_for_sms, 128, expand);
      void* contract[] = {&count, &columns, &part, &out_weights_, &hidden, &y};
      launch(contract_, 4 * tuned_for_sms, 128, contract);
      travel_.wait_for(compute_);
      check(ncclAllReduce(pointer(y), pointer(at(sums_, std::size_t{chunk} * count)), count,
                          ncclInt32, ncclSum, comm_, travel_.stream()),
            "ncclAllReduce");
    }
    compute_.wait_for(travel_);
    unsigned all = tokens_ * width;
    void* settle[] = {&all, &sums_, &x_};
    launch(settle_, 4 * tuned_for_sms, 256, settle);
  }

  // Each rank adds something to all tokens, brings some of the tokens to size, and gives them to
  // all. Meanwhile the values as they were are put aside.
  void mix_tokens(int number) {
    unsigned all = tokens_ * width;
    int columns = width;
    void* mix[] = {&all, &columns, &part_begin_, &mix_weights_, &x_, &y_};
    launch(mix_, 4 * tuned_for_sms, 128, mix);
    travel_.wait_for(compute_);
    const std::size_t own = std::size_t{own_tokens_} * width;
    check(ncclReduceScatter(pointer(y_), pointer(at(sums_, first_own_)), own, ncclInt32, ncclSum,
                            comm_, travel_.stream()),
          "ncclReduceScatter");
    CUdeviceptr slot = at(past_, std::size_t{all} * static_cast<unsigned>(number % slots));
    void* remember[] = {&all, &x_, &slot};
    launch(remember_, (all + 255) / 256, 256, remember);
    compute_.wait_for(travel_);
    CUdeviceptr rows = at(sums_, first_own_);
    void* normalise[] = {&columns, &rows};
    launch(normalise_, own_tokens_, 256, normalise);
    travel_.wait_for(compute_);
    check(ncclAllGather(pointer(rows), pointer(x_), own, ncclInt32, comm_, travel_.stream()),
          "ncclAllGather");
    compute_.wait_for(travel_);
  }

  static CUfunction function(CUmodule module, const char* name) {
    CUfunction found = nullptr;
    check(cuModuleGetFunction(&found, module, name), name);
    return found;
  }

  void launch(CUfunction kernel, unsigned grid, unsigned block, void** arguments) const {
    check(cuLaunchKernel(kernel, grid, 1, 1, block, 1, 1, 0, compute_.stream(), arguments, nullptr),
          "cuLaunchKernel");
  }

  static void add_to(std::uint64_t& hash, CUdeviceptr memory, std::size_t count) {
    std::vector<int> values(count);
    check(cuMemcpyDtoH(values.data(), memory, count * sizeof(int)), "cuMemcpyDtoH");
    for (const int value : values)
      hash = (hash ^ static_cast<std::uint32_t>(value)) * 1099511628211ULL;
  }

  ncclComm_t comm_;
  unsigned tokens_, part_;
  int part_begin_;
  unsigned own_tokens_;
  std::size_t first_own_;
  CUfunction expand_, contract_, settle_, mix_, remember_, normalise_;
  CUdeviceptr x_, hidden_, y_, sums_, past_;
  CUdeviceptr in_weights_ = 0, out_weights_ = 0, mix_weights_ = 0;
  Lane compute_, travel_;
};

// Seconds that the device takes from one of its points to another.
class Watch {
 public:
  explicit Watch(CUstream stream) : stream_(stream) {
    check(cuEventCreate(&begin_, 0), "cuEventCreate");
    check(cuEventCreate(&end_, 0), "cuEventCreate");
  }
  void start() { check(cuEventRecord(begin_, stream_), "cuEventRecord"); }
  [[nodiscard]] double stop() {
    float milliseconds = 0;
    check(cuEventRecord(end_, stream_), "cuEventRecord");
    check(cuEventSynchronize(end_), "cuEventSynchronize");
    check(cuEventElapsedTime(&milliseconds, begin_, end_), "cuEventElapsedTime");
    return static_cast<double>(milliseconds) * 1e-3;
  }

 private:
  CUstream stream_;
  CUevent begin_ = nullptr, end_ = nullptr;
};

void run(const Options& options, const Place& place, CUmodule module, ncclComm_t comm) {
  Transformer transformer(module, place, comm, options.tokens);
  Watch watch(transformer.stream());
  for (int number = 0; number < options.steps; ++number) {
    if (place.rank == options.straggler) std::this_thread::sleep_for(options.late);
    // The first step makes connections between the GPUs.
    if (number == 1) watch.start();
    transformer.step(number);
    // Whoever asked for this step gets it before the next one begins.
    check(cuStreamSynchronize(transformer.stream()), "cuStreamSynchronize");
  }
  const double seconds = options.steps > 1 ? watch.stop() / (options.steps - 1) : 0.0;
  std::printf("rank %d of %d: %d steps of %u x %u values, checksum %016llx\n", place.rank,
              place.ranks, options.steps, options.tokens, width,
              static_cast<unsigned long long>(transformer.checksum()));
  std::fprintf(stderr, "rank %d of %d: %.1f us a step\n", place.rank, place.ranks, seconds * 1e6);
}

int usage(int status) {
  std::fputs(
      "usage: tensor_parallel [--steps N] [--tokens N] [--meet PATH] [--straggler RANK:MS]\n"
      "Runs N steps (200) of a toy transformer that several processes share out.\n"
      "Rank and number of ranks are those of torchrun (RANK, WORLD_SIZE), Open MPI or Slurm.\n"
      "  --meet PATH          a Unix socket, by which rank 0 gives the others NCCL's id\n"
      "  --tokens N           rows of values (1024): a multiple of 4 and of the number of ranks\n"
      "  --straggler RANK:MS  this rank sleeps so long before each step\n",
      status == 0 ? stdout : stderr);
  return status;
}

// The whole text, as a number from `least` on.
bool read_number(const std::string& text, int least, int& to) {
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || value < least || value > 1000000) return false;
  to = static_cast<int>(value);
  return true;
}

bool read_option(Options& options, const std::string& option, const std::string& value) {
  int number = 0;
  if (option == "--steps") return read_number(value, 0, options.steps);
  if (option == "--meet") {
    options.meet = value;
    return !value.empty();
  }
  if (option == "--tokens" && read_number(value, 1, number)) {
    options.tokens = static_cast<unsigned>(number);
    return true;
  }
  if (option != "--straggler") return false;
  const auto colon = value.find(':');
  if (colon == std::string::npos || !read_number(value.substr(0, colon), 0, options.straggler) ||
      !read_number(value.substr(colon + 1), 0, number))
    return false;
  options.late = std::chrono::milliseconds(number);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    if (std::string(argv[i]) == "--help") return usage(0);
    if (i + 1 == argc || !read_option(options, argv[i], argv[i + 1])) return usage(2);
  }
  const Place place = place_of_this_process();
  const auto ranks = static_cast<unsigned>(place.ranks);
  if (options.tokens % chunks != 0 || options.tokens % ranks != 0 || width % ranks != 0)
    return usage(2);

  check(cuInit(0), "cuInit");
  int devices = 0;
  check(cuDeviceGetCount(&devices), "cuDeviceGetCount");
  CUdevice device = 0;
  check(cuDeviceGet(&device, place.on_this_host % devices), "cuDeviceGet");
  CUcontext context = nullptr;
  check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  CUmodule module = nullptr;
  check(cuModuleLoad(&module, beside_the_executable("tensor_parallel_kernels.fatbin").c_str()),
        "loading tensor_parallel_kernels.fatbin from beside the program");

  ncclUniqueId id{};
  if (place.rank == 0) check(ncclGetUniqueId(&id), "ncclGetUniqueId");
  share_id(place, options.meet, id);
  ncclComm_t comm = nullptr;
  check(ncclCommInitRank(&comm, place.ranks, id, place.rank), "ncclCommInitRank");
  run(options, place, module, comm);
  check(ncclCommDestroy(comm), "ncclCommDestroy");
  check(cuDevicePrimaryCtxRelease(device), "cuDevicePrimaryCtxRelease");
  return 0;
}
