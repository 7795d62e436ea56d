#include "device_kernel.hpp"

#include <simcuda/simcuda.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include "reduction.hpp"
#include "settings.hpp"

namespace simnccl {

namespace {

/// NCCL hands its kernels one structure of this size.
struct KernelArguments {
  std::uint64_t ticket = 0;
  std::array<std::byte, 4096 - sizeof(std::uint64_t)> rest{};
};

constexpr simcuda_parameter parameter{sizeof(KernelArguments), alignof(KernelArguments)};
constexpr std::array type_names{"u8",  "u32",  "u64",    "f16",   "f32",
                                "f64", "bf16", "f8e4m3", "f8e5m2"};

// Signed integers are added as unsigned ones.
const char* name_of_type(ncclDataType_t type) {
  switch (static_cast<int>(type)) {
    case ncclInt8:
    case ncclUint8:
      return "u8";
    case ncclInt32:
    case ncclUint32:
      return "u32";
    case ncclInt64:
    case ncclUint64:
      return "u64";
    case ncclFloat16:
      return "f16";
    case ncclFloat64:
      return "f64";
    case ncclBfloat16:
      return "bf16";
    case float8_e4m3:
      return "f8e4m3";
    case float8_e5m2:
      return "f8e5m2";
    default:
      return "f32";
  }
}

std::string mangled(const std::string& name) {
  const std::string full = "ncclDevKernel_" + name;
  return "_Z" + std::to_string(full.size()) + full + "24ncclDevKernelArgsStorageILm4096EE";
}

/// What the tickets that are handed to kernels stand for.
class Tickets {
 public:
  struct Entry {
    std::shared_ptr<const KernelPlan> plan;
    unsigned channels, threads;
    bool captured;
  };

  std::uint64_t add(Entry entry) {
    const std::lock_guard lock(mutex_);
    entries_.emplace(next_, std::move(entry));
    return next_++;
  }
  /// Null plan: there is none, or it was used.
  Entry take(std::uint64_t ticket) {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(ticket);
    if (found == entries_.end()) return {};
    const Entry entry = found->second;
    if (!entry.captured) entries_.erase(found);
    return entry;
  }
  void forget(const Communicator& comm) {
    const std::lock_guard lock(mutex_);
    std::erase_if(entries_,
                  [&](const auto& one) { return one.second.plan->comm().get() == &comm; });
  }

  static Tickets& instance() {
    static auto* const tickets = new Tickets;
    return *tickets;
  }

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, Entry> entries_;
  std::uint64_t next_ = 1;
};

// A real kernel would hang, or write anywhere.
[[noreturn]] void refuse(const char* what) {
  std::fprintf(stderr, "simnccl: a kernel of NCCL was launched %s\n", what);
  std::abort();
}

KernelRun& run_of(void* data) {
  return *static_cast<KernelRun*>(data);
}

int join(const simcuda_launch* launch, simcuda_joint_work* work) {
  KernelArguments arguments;
  std::memcpy(&arguments, launch->arguments[0], sizeof arguments);
  const Tickets::Entry entry = Tickets::instance().take(arguments.ticket);
  if (entry.plan == nullptr) refuse("a second time, or after the end of its communicator");
  if (launch->grid[0] != entry.channels || launch->block[0] != entry.threads)
    refuse("in another shape than NCCL's");
  work->arrive = [](void* data, double start) { run_of(data).arrive(start); };
  work->may_post = [](void* data) { return run_of(data).may_post() ? 1 : 0; };
  work->post = [](void* data) { run_of(data).post(); };
  work->may_finish = [](void* data, double* end) { return run_of(data).may_finish(*end) ? 1 : 0; };
  work->finish = [](void* data) { run_of(data).finish(); };
  work->release = [](void* data) { delete static_cast<KernelRun*>(data); };
  work->data = entry.plan->begin().release();
  return CUDA_SUCCESS;
}

/// All kernels, as a driver's library.
class Kernels {
 public:
  Kernels() {
    add("SendRecv");
    add("AllGather_RING_LL");
    add("Broadcast_RING_LL");
    for (const char* const type : type_names)
      for (const char* const name : {"AllReduce_Sum_%s_RING_LL", "AllReduce_Sum_%s_TREE_LL",
                                     "Reduce_Sum_%s_RING_LL", "ReduceScatter_Sum_%s_RING_LL"}) {
        char text[64];
        std::snprintf(text, sizeof text, name, type);
        add(text);
      }
    std::vector<const simcuda_kernel*> pointers;
    std::string image = "simcuda image 1\n";
    for (const simcuda_kernel& kernel : kernels_) {
      pointers.push_back(&kernel);
      image += std::string("kernel ") + kernel.name + "\n";
    }
    const simcuda_kernel_table table{SIMCUDA_VERSION, pointers.data(), pointers.size()};
    CUlibrary library = nullptr;
    require(simcuda_register_kernels(&table) == 0 &&
                cuLibraryLoadData(&library, image.c_str(), nullptr, nullptr, 0, nullptr, nullptr,
                                  0) == CUDA_SUCCESS,
            ncclUnhandledCudaError, "the driver does not take simnccl's kernels");
    for (const std::string& name : names_) {
      CUkernel kernel = nullptr;
      require(cuLibraryGetKernel(&kernel, library, name.c_str()) == CUDA_SUCCESS,
              ncclUnhandledCudaError, "the driver does not give simnccl's kernels");
      handles_[name] = reinterpret_cast<CUfunction>(kernel);
    }
  }

  [[nodiscard]] CUfunction find(const std::string& name) const {
    return handles_.at(mangled(name));
  }

  static const Kernels& instance() {
    static auto* const kernels = new Kernels;
    return *kernels;
  }

 private:
  void add(const std::string& name) {
    simcuda_kernel kernel{};
    kernel.name = names_.emplace_back(mangled(name)).c_str();
    kernel.parameters = &parameter;
    kernel.parameter_count = 1;
    kernel.registers = 96;
    kernel.join = &join;
    kernels_.push_back(kernel);
  }

  std::deque<std::string> names_;
  std::deque<simcuda_kernel> kernels_;
  std::map<std::string, CUfunction> handles_;
};

bool is_capturing(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
         status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

}  // namespace

std::string kernel_name(int function, int algorithm, ncclDataType_t type) {
  const std::string name = name_of_function(function);
  if (function == all_gather || function == broadcast) return name + "_RING_LL";
  const bool is_tree = function == all_reduce && algorithm == tree;
  return name + "_Sum_" + name_of_type(type) + (is_tree ? "_TREE_LL" : "_RING_LL");
}

void load_kernels() {
  (void)Kernels::instance();
}

void launch_kernel(std::unique_ptr<KernelPlan> plan, const KernelShape& shape, CUstream stream) {
  const CUfunction kernel = Kernels::instance().find(shape.name);
  KernelArguments arguments;
  arguments.ticket = Tickets::instance().add(
      {std::move(plan), shape.channels, shape.threads, is_capturing(stream)});
  std::size_t bytes = sizeof arguments;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &arguments, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  CUlaunchConfig config{};
  config.gridDimX = shape.channels;
  config.blockDimX = shape.threads;
  config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream;
  if (cuLaunchKernelEx(&config, kernel, nullptr, extra) == CUDA_SUCCESS) return;
  (void)Tickets::instance().take(arguments.ticket);
  throw Error{ncclUnhandledCudaError, "a kernel could not be launched"};
}

void forget_kernels_of(const Communicator& comm) {
  Tickets::instance().forget(comm);
}

}  // namespace simnccl
