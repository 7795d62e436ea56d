#include "intercept/submit/spliced_loads.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "core/submission/submission.hpp"
#include "core/value/stable_hash.hpp"
#include "environment/variables.hpp"
#include "gpu/image/fat_binary.hpp"
#include "gpu/image/kernel_image.hpp"
#include "gpu/image/kernel_name.hpp"
#include "gpu/image/program_file.hpp"
#include "intercept/host/hook_arguments.hpp"

namespace contextune::intercept {
namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{256} << 20;
/// Measured on the host of an H200, in ms a MiB: 0.9 for memory and reading, twice that for the
/// first image, 1.4 for uncompressing. The driver is spared the last: its own load took 1.8, and
/// 0.3 of what was not compressed.
constexpr double seconds_of_changed_byte = 1.5e-3 / (1 << 20);
constexpr double seconds_of_read_byte = 3e-3 / (1 << 20);

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// A debugger, a profiler or a sanitizer shows the code as it is loaded.
bool is_watched_by_tool() {
  for (const char* name : {"CUDA_INJECTION64_PATH", "CUDA_INJECTION32_PATH"}) {
    const char* const value = variable(name);
    if (value != nullptr && *value != '\0') return true;
  }
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("TracerPid:")) return !line.ends_with("\t0");
  }
  return false;
}

bool is_spliced_architecture(const gpu::Driver& driver) {
  int count = 0;
  if (driver.cuDeviceGetCount(&count) != CUDA_SUCCESS || count == 0) return false;
  for (int i = 0; i < count; ++i) {
    CUdevice device = 0;
    int major = 0;
    int minor = 0;
    if (driver.cuDeviceGet(&device, i) != CUDA_SUCCESS ||
        driver.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device) !=
            CUDA_SUCCESS ||
        driver.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device) !=
            CUDA_SUCCESS ||
        major * 10 + minor != gpu::entry_wait_architecture) {
      return false;
    }
  }
  return true;
}

/// NVIDIA's own libraries, whose licence may forbid a change.
bool is_library_of_others(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  const std::string_view name = slash == path.npos ? path : path.substr(slash + 1);
  constexpr std::array<std::string_view, 16> others = {
      "libcublas", "libcudnn", "libcufft",     "libcurand",   "libcusolver",   "libcusparse",
      "libnccl",   "libnpp",   "libnvjpeg",    "libcutensor", "libcusparseLt", "libnvshmem",
      "libcuda",   "libnvrtc", "libnvJitLink", "libcupti"};
  return std::any_of(others.begin(), others.end(),
                     [&](std::string_view one) { return name.starts_with(one); });
}

/// The same by what their kernels are called: those that are linked in statically, or handed over
/// from the heap.
bool is_kernel_of_others(std::string_view symbol) {
  constexpr std::array<std::string_view, 12> parts = {
      "nvjet",    "cublas",   "cudnn",  "cufft", "ncclDev", "nccl",
      "cusparse", "cusolver", "curand", "xmma",  "cask",    "vector_fft"};
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return symbol.find(part) != symbol.npos; });
}

bool contains(const std::vector<std::uint64_t>& all, std::uint64_t one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

/// Its first bytes hold how long it is and where its parts lie. 0: it has no form that is known.
std::uint64_t key_of_image(const gpu::ByteSource& image) {
  constexpr std::size_t first_bytes = 4096;
  auto bytes = gpu::fat_binary_bytes(image);
  if (!bytes) bytes = gpu::machine_code_bytes(image);
  if (!bytes) return 0;
  std::array<char, first_bytes> first;
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(*bytes, first.size()));
  StableHash hash;
  hash.add(*bytes);
  hash.add(std::string_view(first.data(), image.read_some(0, first.data(), count)));
  return hash.value();
}

/// The image and what the driver was told about it.
struct Request {
  const void* image = nullptr;
  const char* path = nullptr;
  unsigned num_options = 0;
  const CUjit_option* options = nullptr;
  unsigned num_library_options = 0;
  const CUlibraryOption* library_options = nullptr;
  void* const* library_values = nullptr;

  Request(contextune_fn fn, void* const* args) noexcept {
    switch (fn) {
      case contextune_fn_cuModuleLoad:
        path = argument<const char*>(args, 1);
        break;
      case contextune_fn_cuModuleLoadDataEx:
        image = argument<const void*>(args, 1);
        num_options = argument<unsigned>(args, 2);
        options = argument<const CUjit_option*>(args, 3);
        break;
      case contextune_fn_cuLibraryLoadData:
      case contextune_fn_cuLibraryLoadFromFile:
        image = argument<const void*>(args, 1);
        options = argument<const CUjit_option*>(args, 2);
        num_options = argument<unsigned>(args, 4);
        library_options = argument<const CUlibraryOption*>(args, 5);
        library_values = argument<void* const*>(args, 6);
        num_library_options = argument<unsigned>(args, 7);
        if (fn == contextune_fn_cuLibraryLoadFromFile) {
          path =
              std::exchange(image, nullptr) == nullptr ? nullptr : argument<const char*>(args, 1);
        }
        break;
      default:
        image = argument<const void*>(args, 1);
    }
  }

  /// The driver reads the image after the load as well.
  [[nodiscard]] bool keeps_image() const noexcept {
    for (unsigned i = 0; i < num_library_options; ++i) {
      if (library_options != nullptr && library_values != nullptr &&
          library_options[i] == CU_LIBRARY_BINARY_IS_PRESERVED) {
        return library_values[i] != nullptr;
      }
    }
    return false;
  }

  /// The driver is told to compile although there may be machine code.
  [[nodiscard]] bool prefers_source() const noexcept {
    for (unsigned i = 0; i < num_options; ++i) {
      if (options != nullptr &&
          (options[i] == CU_JIT_FALLBACK_STRATEGY || options[i] == CU_JIT_TARGET ||
           options[i] == CU_JIT_TARGET_FROM_CUCONTEXT)) {
        return true;
      }
    }
    return false;
  }
};

}  // namespace

SplicedLoads::SplicedLoads(const gpu::Driver& driver, Splice splice, bool reads,
                           std::function<double()> seconds, Refused refused, LeftOut left_out)
    : driver_(driver),
      seconds_(std::move(seconds)),
      refused_(std::move(refused)),
      left_out_(std::move(left_out)),
      reads_(reads || splice != Splice::Off),
      splice_(splice) {
  if (!reads_) return;
  const char* const forced = variable("CUDA_FORCE_PTX_JIT");
  if (forced != nullptr && std::string_view(forced) != "0") reads_ = false;
  if (!is_spliced_architecture(driver_)) reads_ = false;
  if (!reads_ || splice_ == Splice::Off || !is_watched_by_tool()) return;
  splice_ = Splice::Off;
  refused_("Images are loaded as they are: a debugger, a profiler or a sanitizer is at work.");
}

std::uint64_t SplicedLoads::bytes_left(bool changes) const {
  const double seconds = changes ? seconds_of_changed_byte : seconds_of_read_byte;
  return std::min(static_cast<std::uint64_t>(std::max(0.0, seconds_()) / seconds), most_bytes);
}

std::shared_ptr<SplicedLoads::Loaded> SplicedLoads::read_linked(const void* image) {
  auto loaded = std::make_shared<Loaded>();
  loaded->is_linked = true;
  std::string ignored;
  auto read = gpu::spliced_image(
      gpu::MemorySource(image), bytes_left(false), [](const gpu::CodeKernel&) { return false; },
      ignored);
  if (read) loaded->image = std::move(*read);
  return loaded;
}

std::shared_ptr<SplicedLoads::Loaded> SplicedLoads::splice(contextune_fn fn, void* const* args) {
  const Request request(fn, args);
  const auto leave = [&](const std::string& why) {
    {
      const std::lock_guard lock(mutex_);
      ++totals_.left;
    }
    if (is_on()) refused_("An image was loaded as it is: " + why + ".");
    return nullptr;
  };
  if (request.image == nullptr && request.path == nullptr) return nullptr;
  std::optional<gpu::FatBinaryWrapper> wrapper;
  if (request.image != nullptr) {
    wrapper = gpu::MemorySource(request.image).read<gpu::FatBinaryWrapper>(0);
    if (wrapper && !wrapper->is_valid()) wrapper.reset();
  }
  if (wrapper && wrapper->is_linked_at_load()) {
    if (is_on()) (void)leave("the driver links it from several fatbins");
    return read_linked(wrapper->fat_binary);
  }
  if (request.prefers_source()) return leave("the program says which code the driver has to take");

  const void* image = request.image;
  const bool is_wrapped = wrapper.has_value();
  std::unique_ptr<gpu::ByteSource> source;
  std::string file;
  if (request.path != nullptr) {
    file = request.path;
    std::error_code ignored;
    if (driver_.simulated && std::filesystem::exists(file + ".sim", ignored)) return nullptr;
    source = std::make_unique<gpu::FileSource>(file);
  } else {
    if (is_wrapped) image = wrapper->fat_binary;
    source = std::make_unique<gpu::MemorySource>(image);
    if (const auto loaded_from = gpu::program_file_of(image, 1)) file = loaded_from->load;
    file = file.substr(0, file.rfind('@'));
  }
  auto loaded = std::make_shared<Loaded>();
  loaded->origin.key = key_of_image(*source);
  std::vector<std::uint64_t> left;
  bool is_needed = false;
  {
    const std::lock_guard lock(mutex_);
    left = left_;
    is_needed = contains(needed_, loaded->origin.key);
    if (!needed_.empty() && !is_needed) {
      ++totals_.unneeded;
      return loaded;
    }
  }
  const Splice splice = splice_;
  const bool may_change = splice == Splice::All || !is_library_of_others(file);
  if (!may_change) {
    (void)leave("it belongs to " + file + ", a library of NVIDIA's (--splice all changes it)");
    // Launches after its kernels may be chained all the same.
    if (!is_needed && !reads_others_) return loaded;
  }
  const bool changes = may_change && splice != Splice::Off;
  std::string why;
  auto spliced = gpu::spliced_image(
      *source, bytes_left(changes),
      [&](const gpu::CodeKernel& kernel) {
        return changes && (splice == Splice::All || !is_kernel_of_others(kernel.symbol)) &&
               !(left_out_ && left_out_(kernel.symbol)) &&
               (left.empty() || !contains(left, hash_of_kernel(kernel.symbol)));
      },
      why);
  loaded->origin.was_read = why != gpu::too_much_code;
  if (!spliced) {
    (void)leave(why);
    return loaded;
  }
  loaded->image = std::move(*spliced);
  if (is_wrapped) {
    loaded->wrapper = *wrapper;
    loaded->wrapper.fat_binary = loaded->image.bytes.data();
  }
  return loaded;
}

CUresult SplicedLoads::load(contextune_fn fn, void* const* args, const Load& load) noexcept {
  const auto load_as_it_is = [&] {
    const CUresult result = load(fn, args);
    if (result == CUDA_SUCCESS) forget(*argument<void**>(args, 0));
    return result;
  };
  if (!reads()) return load_as_it_is();
  std::shared_ptr<Loaded> loaded;
  const double begin = now();
  try {
    loaded = splice(fn, args);
  } catch (const std::exception&) {
    loaded = nullptr;  // no memory for it
  }
  const double took = now() - begin;
  if (loaded == nullptr || loaded->image.bytes.empty()) {
    const CUresult result = load_as_it_is();
    try {
      if (loaded != nullptr && result == CUDA_SUCCESS) {
        remember(*argument<void**>(args, 0), std::move(loaded), false);
      }
      const std::lock_guard lock(mutex_);
      totals_.seconds += took;
    } catch (const std::exception&) {
      // Its kernels stay unknown.
    }
    return result;
  }
  const Request request(fn, args);
  const void* const image = loaded->wrapper.fat_binary != nullptr
                                ? static_cast<const void*>(&loaded->wrapper)
                                : loaded->image.bytes.data();
  contextune_fn with = fn;
  if (fn == contextune_fn_cuModuleLoad) with = contextune_fn_cuModuleLoadData;
  if (fn == contextune_fn_cuLibraryLoadFromFile) with = contextune_fn_cuLibraryLoadData;
  std::array<void*, 8> changed{};
  const std::size_t count = with == contextune_fn_cuLibraryLoadData    ? 8
                            : with == contextune_fn_cuModuleLoadDataEx ? 5
                                                                       : 2;
  std::copy_n(args, count, changed.begin());
  changed[1] = const_cast<const void**>(&image);
  CUresult result = load(with, changed.data());
  if (result != CUDA_SUCCESS) {
    refused_("An image was loaded as it is: the driver refused it with waits (" +
             gpu::describe(driver_, result) + ").");
    result = load_as_it_is();
    const std::lock_guard lock(mutex_);
    ++totals_.left;
    totals_.seconds += now() - begin;
    return result;
  }
  forget(*argument<void**>(args, 0));
  try {
    {
      const std::lock_guard lock(mutex_);
      ++totals_.images;
      totals_.seconds += took - loaded->image.spared_seconds;
      for (const auto& [reason, kernels] : loaded->image.refused) totals_.refused += kernels;
      for (const auto& [symbol, order] : loaded->image.kernels)
        totals_.kernels += order.waits ? 1 : 0;
    }
    // A module's image is the driver's own copy; a file's too.
    remember(*argument<void**>(args, 0), std::move(loaded), request.keeps_image());
  } catch (const std::exception&) {
    // Without memory its kernels stay unknown, and none of them is chained.
  }
  return result;
}

void SplicedLoads::remember(const void* owner, std::shared_ptr<Loaded> loaded, bool keeps_bytes) {
  if (!keeps_bytes) loaded->image.bytes = {};
  const std::lock_guard lock(mutex_);
  totals_.kept_bytes += loaded->image.bytes.size();
  loaded_[owner] = std::move(loaded);
}

void SplicedLoads::forget(const void* owner) noexcept {
  const std::lock_guard lock(mutex_);
  const auto known = loaded_.find(owner);
  if (known == loaded_.end()) return;
  totals_.kept_bytes -= known->second->image.bytes.size();
  loaded_.erase(known);
}

void SplicedLoads::unloads(const void* owner) noexcept {
  const std::lock_guard lock(mutex_);
  const auto known = loaded_.find(owner);
  if (known == loaded_.end()) return;
  totals_.kept_bytes -= known->second->image.bytes.size();
  // The driver still reads it during the call.
  constexpr std::size_t most_at_once = 16;
  try {
    unloading_.push_back(known->second);
    if (unloading_.size() > most_at_once) unloading_.pop_front();
    loaded_.erase(known);
  } catch (const std::exception&) {
    // Kept, then; what is loaded in its place replaces it.
  }
}

std::optional<gpu::KernelOrder> SplicedLoads::order_of(const void* owner,
                                                       std::string_view symbol) noexcept {
  const std::lock_guard lock(mutex_);
  const auto known = loaded_.find(owner);
  if (known == loaded_.end()) return std::nullopt;
  const bool is_linked = known->second->is_linked;
  const auto kernel = known->second->image.kernels.find(symbol);
  if (kernel != known->second->image.kernels.end()) {
    gpu::KernelOrder order = kernel->second;
    order.triggers = order.triggers || is_linked;
    return order;
  }
  if (!is_linked) return std::nullopt;
  return gpu::KernelOrder{.triggers = true, .launches = true, .maps = true};
}

SplicedLoads::Image SplicedLoads::image_of(const void* owner) noexcept {
  const std::lock_guard lock(mutex_);
  const auto known = loaded_.find(owner);
  return known == loaded_.end() ? Image{0, true} : known->second->origin;
}

SplicedLoads::Totals SplicedLoads::totals() noexcept {
  const std::lock_guard lock(mutex_);
  return totals_;
}

SplicedLoads::LeftOut left_out_by(const NameFilter& filter) {
  if (filter.leaves_out_none()) return {};  // no kernel's name has to be made readable
  return [&filter](const std::string& symbol) {
    const std::string name = gpu::demangled_kernel_name(symbol);
    return !filter.why_not({&name, 1}).empty();
  };
}

}  // namespace contextune::intercept
