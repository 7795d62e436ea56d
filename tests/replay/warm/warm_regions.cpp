// Regions drawn from seeds whose memory often holds the right result already: what they write was
// computed before, from the same inputs. One after another in one process, which knows nothing of
// tuning: what it prints must be the same whatever watches it.
#include <cuda.h>
#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "../check.hpp"
#include "../random.hpp"
#include "kernels.hpp"

namespace {

struct Kernel {
  Family family;
  std::string name;
  std::size_t x = 0, y = 0, z = 0;  ///< buffers
};

const std::vector<std::string> families{"scale", "add", "cap", "pick", "hop"};
const std::vector<std::string> flavours{"right", "half", "nothing", "twice", "stale"};

class Region {
 public:
  Region(std::uint64_t seed, CUmodule shown, CUmodule hidden)
      : random_(seed),
        name_("warm" + std::to_string(seed)),
        count_(random_.between(64, 20'000)),
        module_(random_.chance(75) ? shown : hidden),
        is_warm_(random_.chance(70)),
        inputs_change_(random_.chance(40)),
        visits_(random_.between(1, 5)) {
    draw();
    std::printf("%s code=%s warm=%d change=%d visits=%u kernels=", name_.c_str(),
                module_ == shown ? "shown" : "hidden", is_warm_, inputs_change_, visits_);
    for (const Kernel& one : kernels_) std::printf("%s,", one.name.c_str());
    std::fflush(stdout);
  }
  ~Region() {
    for (const CUdeviceptr one : memory_) check(cuMemFree(one), "cuMemFree");
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  void run() {
    if (is_warm_) body();
    for (unsigned visit = 0; visit < visits_; ++visit) {
      if (inputs_change_) write_inputs();
      check(cuCtxSynchronize(), "cuCtxSynchronize");
      nvtxRangePushA(name_.c_str());
      body();
      check(cuCtxSynchronize(), "cuCtxSynchronize");
      nvtxRangePop();
      std::printf(" %016llx", static_cast<unsigned long long>(digest()));
    }
    std::printf("\n");
    std::fflush(stdout);
  }

 private:
  static constexpr std::size_t num_inputs = 2;  ///< the first, beside one of places

  /// Buffers: inputs of values, one of places, then what each kernel writes, which no other does:
  /// what one kernel writes over another's result would not show.
  void draw() {
    for (std::size_t i = 0; i < num_inputs + 1; ++i) add_buffer();
    write_inputs();
    std::vector<std::size_t> values{0, 1};
    std::vector<std::size_t> places{num_inputs};
    for (unsigned i = random_.between(1, 4); i > 0; --i) {
      const auto family = static_cast<Family>(random_.below(families.size()));
      Kernel one{family,
                 families[static_cast<std::size_t>(family)] + "_" + random_.one_of(flavours)};
      one.x = random_.one_of(values);
      one.z = family == Family::Pick ? random_.one_of(places) : num_inputs;
      one.y = add_buffer();
      (family == Family::Hop ? places : values).push_back(one.y);
      kernels_.push_back(one);
    }
  }

  std::size_t add_buffer() {
    CUdeviceptr made = 0;
    check(cuMemAlloc(&made, count_ * sizeof(Word)), "cuMemAlloc");
    check(cuMemsetD8(made, 0, count_ * sizeof(Word)), "cuMemsetD8");
    memory_.push_back(made);
    return memory_.size() - 1;
  }

  void write_inputs() {
    std::vector<Word> words(count_);
    for (std::size_t i = 0; i < num_inputs; ++i) {
      for (Word& word : words) word = random_.below(1'000'000'000);
      copy_to(memory_[i], words);
    }
    for (Word i = 0; i < count_; ++i) words[i] = i;
    random_.shuffle(words);
    copy_to(memory_[num_inputs], words);
  }

  static void copy_to(CUdeviceptr to, const std::vector<Word>& words) {
    check(cuMemcpyHtoD(to, words.data(), words.size() * sizeof(Word)), "cuMemcpyHtoD");
  }

  void body() {
    for (const Kernel& one : kernels_) {
      CUfunction function = nullptr;
      check(cuModuleGetFunction(&function, module_, one.name.c_str()), "cuModuleGetFunction");
      CUdeviceptr x = memory_[one.x], y = memory_[one.y], z = memory_[one.z];
      Word count = count_;
      void* arguments[] = {&count, &x, &y, &z};
      check(cuLaunchKernel(function, 4, 1, 1, 128, 1, 1, 0, nullptr, arguments, nullptr),
            "cuLaunchKernel");
    }
  }

  [[nodiscard]] std::uint64_t digest() const {
    std::vector<Word> words(count_);
    std::uint64_t all = 0;
    for (const CUdeviceptr one : memory_) {
      check(cuMemcpyDtoH(words.data(), one, count_ * sizeof(Word)), "cuMemcpyDtoH");
      for (const Word word : words) all = (all ^ word) * 1099511628211ULL;
    }
    return all;
  }

  Random random_;
  const std::string name_;
  const Word count_;
  const CUmodule module_;
  const bool is_warm_;
  const bool inputs_change_;
  const unsigned visits_;
  std::vector<CUdeviceptr> memory_;
  std::vector<Kernel> kernels_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    std::fputs("usage: warm_regions KERNEL_FOLDER FIRST_SEED [COUNT]\n", stderr);
    return 2;
  }
  const std::string folder = argv[1];
  const std::uint64_t first = std::strtoull(argv[2], nullptr, 10);
  const std::uint64_t count = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1;
  check(cuInit(0), "cuInit");
  CUcontext context = nullptr;
  check(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  CUmodule shown = nullptr, hidden = nullptr;
  check(cuModuleLoad(&shown, (folder + "/warm_kernels.fatbin").c_str()), "cuModuleLoad");
  check(cuModuleLoad(&hidden, (folder + "/warm_kernels.cubin").c_str()), "cuModuleLoad");
  for (std::uint64_t i = 0; i < count; ++i) Region(first + i, shown, hidden).run();
  return 0;
}
