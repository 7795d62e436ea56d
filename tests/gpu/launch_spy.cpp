// A libcuda.so.1 in front of the driver's, which notes the block of every launch that is handed to
// it. It needs the driver under the name driver_behind_spy.so: whatever it does not define itself
// is found there by whoever looks things up in this library.
#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>
#include <vector>

#include "launch_spy.hpp"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

std::mutex mutex;
std::vector<SpiedLaunch> launches;

struct Symbol {
  const char* name;
  void* address;
};

// dlsym belongs to contextune in this process, so the driver's table of symbols is read by hand.
int find_in_driver(dl_phdr_info* object, std::size_t, void* data) {
  auto& wanted = *static_cast<Symbol*>(data);
  if (!std::string_view(object->dlpi_name).ends_with("/driver_behind_spy.so")) return 0;
  const ElfW(Sym)* symbols = nullptr;
  const char* names = nullptr;
  const std::uint32_t* hash = nullptr;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    if (object->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    auto* entry =
        reinterpret_cast<const ElfW(Dyn)*>(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry) {
      const auto* at = reinterpret_cast<const void*>(entry->d_un.d_ptr);
      if (entry->d_tag == DT_SYMTAB) symbols = static_cast<const ElfW(Sym)*>(at);
      if (entry->d_tag == DT_STRTAB) names = static_cast<const char*>(at);
      if (entry->d_tag == DT_GNU_HASH) hash = static_cast<const std::uint32_t*>(at);
    }
  }
  if (symbols == nullptr || names == nullptr || hash == nullptr) std::abort();
  // Every defined symbol lies in the chain of a bucket, the last one marked by its lowest bit.
  const std::uint32_t num_buckets = hash[0], first = hash[1], num_words = hash[2];
  const std::uint32_t* buckets = hash + 4 + num_words * (sizeof(void*) / sizeof(std::uint32_t));
  const std::uint32_t* chains = buckets + num_buckets;
  for (std::uint32_t bucket = 0; bucket < num_buckets; ++bucket) {
    for (std::uint32_t i = buckets[bucket]; i >= first; ++i) {
      if (std::strcmp(names + symbols[i].st_name, wanted.name) == 0) {
        wanted.address = reinterpret_cast<void*>(object->dlpi_addr + symbols[i].st_value);
        return 1;
      }
      if ((chains[i - first] & 1) != 0) break;
    }
  }
  return 1;
}

template <typename Function>
Function* in_driver(const char* name) {
  Symbol symbol{name, nullptr};
  dl_iterate_phdr(find_in_driver, &symbol);
  if (symbol.address == nullptr) std::abort();
  return reinterpret_cast<Function*>(symbol.address);
}

void note(CUfunction function, unsigned threads) {
  const std::lock_guard lock(mutex);
  launches.push_back({function, threads});
}

// What cuGetProcAddress answers for a function that stands here.
void* spy_on(std::string_view name, void* found);

}  // namespace

EXPORT const SpiedLaunch* launch_spy_launches(std::size_t* num_launches) {
  const std::lock_guard lock(mutex);
  *num_launches = launches.size();
  return launches.data();
}

EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                               unsigned grid_z, unsigned block_x, unsigned block_y,
                               unsigned block_z, unsigned shared_bytes, CUstream stream,
                               void** arguments, void** extra) {
  static const auto real = in_driver<decltype(cuLaunchKernel)>("cuLaunchKernel");
  const CUresult result = real(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                               shared_bytes, stream, arguments, extra);
  if (result == CUDA_SUCCESS) note(function, block_x * block_y * block_z);
  return result;
}

EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function,
                                 void** arguments, void** extra) {
  static const auto real = in_driver<decltype(cuLaunchKernelEx)>("cuLaunchKernelEx");
  const CUresult result = real(config, function, arguments, extra);
  if (result == CUDA_SUCCESS)
    note(function, config->blockDimX * config->blockDimY * config->blockDimZ);
  return result;
}

EXPORT CUresult cuGetProcAddress_v2(const char* name, void** function, int version,
                                    cuuint64_t flags, CUdriverProcAddressQueryResult* status) {
  static const auto real = in_driver<decltype(cuGetProcAddress)>("cuGetProcAddress_v2");
  const CUresult result = real(name, function, version, flags, status);
  // The program uses the legacy stream only, so those for a stream of each thread stay the
  // driver's.
  if (result == CUDA_SUCCESS && function != nullptr &&
      (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) == 0) {
    *function = spy_on(name, *function);
  }
  return result;
}

namespace {

void* spy_on(std::string_view name, void* found) {
  if (found == nullptr) return nullptr;
  if (name == "cuLaunchKernel") return reinterpret_cast<void*>(&cuLaunchKernel);
  if (name == "cuLaunchKernelEx") return reinterpret_cast<void*>(&cuLaunchKernelEx);
  if (name == "cuGetProcAddress") return reinterpret_cast<void*>(&cuGetProcAddress_v2);
  return found;
}

}  // namespace
