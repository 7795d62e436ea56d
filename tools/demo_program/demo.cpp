// An ordinary program on the CUDA driver API: a toy decoder that turns, remembers, attends,
// projects and normalises a block of values, step after step. It marks each step with the NVTX
// range "decode" and knows nothing of tuning. It prints checksums only: they are the same however
// fast it runs.
#include <cuda.h>
#include <nvtx3/nvToolsExt.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

constexpr unsigned cols = 2048;
constexpr int slots = 12;
constexpr unsigned taps = 8;

// The launch shapes were tuned once, on a GPU with this many SMs.
constexpr unsigned tuned_for_sms = 80;

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  cuGetErrorName(result, &name);
  std::fprintf(stderr, "demo: %s failed: %s (%d)\n", what, name == nullptr ? "?" : name,
               static_cast<int>(result));
  std::exit(1);
}

std::string beside_the_executable(const char* file) {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  const std::string executable(path, length > 0 ? static_cast<std::size_t>(length) : 0);
  return executable.substr(0, executable.rfind('/') + 1) + file;
}

CUdeviceptr device_floats(const std::vector<float>& values) {
  CUdeviceptr memory = 0;
  check(cuMemAlloc(&memory, values.size() * sizeof(float)), "cuMemAlloc");
  check(cuMemcpyHtoD(memory, values.data(), values.size() * sizeof(float)), "cuMemcpyHtoD");
  return memory;
}

// Values between -1 and 1 that look random and are the same everywhere.
std::vector<float> pattern(std::size_t count, std::uint32_t seed) {
  std::vector<float> values(count);
  for (float& value : values) {
    seed = seed * 1664525U + 1013904223U;
    value = static_cast<float>(seed >> 8) / 8388608.0F - 1.0F;
  }
  return values;
}

class Decoder {
 public:
  Decoder(CUmodule module, unsigned num_rows)
      : rows_(num_rows),
        elements_(std::size_t{num_rows} * cols),
        rotate_(function(module, "rotate")),
        remember_(function(module, "remember")),
        attend_(function(module, "attend")),
        project_(function(module, "project")),
        normalise_(function(module, "normalise")),
        x_(device_floats(pattern(elements_, 1))),
        q_(device_floats(std::vector<float>(elements_))),
        y_(device_floats(std::vector<float>(elements_))),
        past_(device_floats(std::vector<float>(elements_ * slots))),
        weights_(device_floats(pattern(std::size_t{cols} * taps, 2))) {
    std::vector<float> cosines(cols / 2);
    std::vector<float> sines(cols / 2);
    for (std::size_t i = 0; i < cols / 2; ++i) {
      const double angle = 0.01 * static_cast<double>(i + 1);
      cosines[i] = static_cast<float>(std::cos(angle));
      sines[i] = static_cast<float>(std::sin(angle));
    }
    cosines_ = device_floats(cosines);
    sines_ = device_floats(sines);
    check(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  }

  void step(int number) {
    auto pairs = static_cast<unsigned>(elements_ / 2);
    int pairs_per_row = cols / 2;
    int row_length = cols;
    auto n = static_cast<unsigned>(elements_);
    int slot_count = slots;
    int newest = number % slots;
    CUdeviceptr slot = past_ + elements_ * sizeof(float) * static_cast<unsigned>(newest);

    nvtxRangePushA("decode");
    void* rotate[] = {&pairs, &pairs_per_row, &cosines_, &sines_, &x_, &q_};
    launch(rotate_, 4 * tuned_for_sms, 128, rotate);
    void* remember[] = {&n, &q_, &slot};
    launch(remember_, (n + 255) / 256, 256, remember);
    void* attend[] = {&n, &slot_count, &newest, &q_, &past_, &y_};
    launch(attend_, 4 * tuned_for_sms, 256, attend);
    void* project[] = {&n, &row_length, &weights_, &y_, &x_};
    launch(project_, 2 * tuned_for_sms, 256, project);
    void* normalise[] = {&row_length, &x_};
    launch(normalise_, rows_, 256, normalise);
    nvtxRangePop();
  }

  // FNV-1a over the bits of x.
  std::uint64_t checksum() {
    std::vector<float> values(elements_);
    check(cuStreamSynchronize(stream_), "cuStreamSynchronize");
    check(cuMemcpyDtoH(values.data(), x_, elements_ * sizeof(float)), "cuMemcpyDtoH");
    std::uint64_t hash = 14695981039346656037ULL;
    const auto* const bytes = reinterpret_cast<const unsigned char*>(values.data());
    for (std::size_t i = 0; i < elements_ * sizeof(float); ++i)
      hash = (hash ^ bytes[i]) * 1099511628211ULL;
    return hash;
  }

 private:
  static CUfunction function(CUmodule module, const char* name) {
    CUfunction found = nullptr;
    check(cuModuleGetFunction(&found, module, name), name);
    return found;
  }

  void launch(CUfunction kernel, unsigned grid, unsigned block, void** arguments) {
    check(cuLaunchKernel(kernel, grid, 1, 1, block, 1, 1, 0, stream_, arguments, nullptr),
          "cuLaunchKernel");
  }

  unsigned rows_;
  std::size_t elements_;
  CUfunction rotate_, remember_, attend_, project_, normalise_;
  CUdeviceptr x_, q_, y_, past_, weights_;
  CUdeviceptr cosines_ = 0, sines_ = 0;
  CUstream stream_ = nullptr;
};

int usage(int status) {
  std::fputs(
      "usage: contextune_demo [--steps N] [--rows N] [--device N]\n"
      "Runs N steps (500) of a toy decoder of N rows (256) and prints checksums of its values.\n",
      status == 0 ? stdout : stderr);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  int steps = 500;
  int rows = 256;
  int ordinal = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--help") return usage(0);
    int* const to = option == "--steps"    ? &steps
                    : option == "--rows"   ? &rows
                    : option == "--device" ? &ordinal
                                           : nullptr;
    if (to == nullptr || i + 1 == argc) return usage(2);
    char* end = nullptr;
    const long value = std::strtol(argv[++i], &end, 10);
    if (*end != '\0' || end == argv[i] || value < 0 || value > 1000000000) return usage(2);
    *to = static_cast<int>(value);
  }
  if (rows < 1 || rows > 65536) return usage(2);

  check(cuInit(0), "cuInit");
  CUdevice device = 0;
  check(cuDeviceGet(&device, ordinal), "cuDeviceGet");
  char name[128] = "";
  check(cuDeviceGetName(name, sizeof name, device), "cuDeviceGetName");
  CUcontext context = nullptr;
  check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  CUmodule module = nullptr;
  check(cuModuleLoad(&module, beside_the_executable("demo_kernels.fatbin").c_str()),
        "loading demo_kernels.fatbin from beside the program");

  std::printf("%d steps of %d x %u values on %s\n", steps, rows, cols, name);
  Decoder decoder(module, static_cast<unsigned>(rows));
  for (int number = 0; number < steps; ++number) {
    decoder.step(number);
    if ((number + 1) % 100 == 0)
      std::printf("step %4d  checksum %016llx\n", number + 1,
                  static_cast<unsigned long long>(decoder.checksum()));
  }
  std::printf("result     checksum %016llx\n", static_cast<unsigned long long>(decoder.checksum()));
  check(cuDevicePrimaryCtxRelease(device), "cuDevicePrimaryCtxRelease");
  return 0;
}
