#include "program_memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "check.hpp"
#include "random.hpp"
#include "simulated_kernels.hpp"

namespace {

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t row_bytes = 1000;       // of memory with a pitch
constexpr std::size_t piece_bytes = 2 << 20;  // of virtual memory

std::size_t whole(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

std::string global_name(std::size_t memory) {
  return "memory" + std::to_string(memory);
}

CUdeviceptr counters_of(CUmodule module) {
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  check(cuModuleGetGlobal_v2(&address, &bytes, module, "counters"), "counters");
  return address;
}

std::vector<std::uint8_t> bytes_of(CUdeviceptr from, std::size_t bytes) {
  std::vector<std::uint8_t> values(bytes);
  check(cuMemcpyDtoH_v2(values.data(), from, bytes), "reading memory");
  return values;
}

}  // namespace

std::uint64_t add_to_digest(std::uint64_t digest, const void* data, std::size_t bytes) {
  const auto* at = static_cast<const unsigned char*>(data);
  for (; bytes >= sizeof(std::uint64_t); bytes -= sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    digest = (digest ^ word) * 1099511628211U;
    digest ^= digest >> 32U;
    at += sizeof word;
  }
  for (; bytes > 0; --bytes) digest = (digest ^ *at++) * 1099511628211U;
  return digest;
}

ProgramMemory::ProgramMemory(const Plan& plan) : plan_(plan) {
  for (std::size_t i = 0; i < num_modules; ++i) modules_.push_back(load_module(i));
  // Nobody asks where those of the other module are before their values are looked at.
  (void)counters_of(modules_[0]);
  for (std::size_t i = 0; i < plan.memory.size(); ++i) device_.push_back(allocate(i));
  for (const PinnedPlan& one : plan.pinned) {
    void* memory = nullptr;
    const std::size_t bytes = std::size_t{one.words} * 4;
    if (one.registered) {
      memory = std::aligned_alloc(page_bytes, whole(bytes, page_bytes));
      check(cuMemHostRegister(memory, bytes, 0), "cuMemHostRegister");
    } else {
      check(cuMemHostAlloc(&memory, bytes, 0), "cuMemHostAlloc");
    }
    host_.push_back(static_cast<std::uint32_t*>(memory));
  }
  fill();
}

ProgramMemory::~ProgramMemory() {
  for (std::size_t i = 0; i < device_.size(); ++i) release(i);
  for (std::size_t i = 0; i < host_.size(); ++i) {
    if (plan_.pinned[i].registered) {
      check(cuMemHostUnregister(host_[i]), "cuMemHostUnregister");
      std::free(host_[i]);
    } else {
      check(cuMemFreeHost(host_[i]), "cuMemFreeHost");
    }
  }
  if (pool_ != nullptr) check(cuMemPoolDestroy(pool_), "cuMemPoolDestroy");
  for (const CUmodule module : modules_) check(cuModuleUnload(module), "cuModuleUnload");
}

CUmodule ProgramMemory::load_module(std::size_t module) const {
  std::string image = "simcuda image 1\n";
  for (std::size_t family = 0; family < num_families; ++family) {
    for (const Flavour flavour : {Flavour::Right, Flavour::Wrong, Flavour::Stray}) {
      const auto kind = static_cast<Family>(family);
      const bool exists = flavour == Flavour::Right || family < num_flavoured_families;
      if (!exists) continue;
      image += "kernel " + kernel_name(kind, flavour) + "\n";
      const std::string shown = shown_access(kind, flavour);
      // The other one has machine code alone.
      if (module == 0 && !shown.empty())
        image += "access " + kernel_name(kind, flavour) + " " + shown + "\n";
    }
  }
  image += "global counters " + std::to_string(num_counters * 4) + "\n";
  for (std::size_t i = 0; i < plan_.memory.size(); ++i) {
    if (plan_.memory[i].kind != MemoryKind::Global || i % num_modules != module) continue;
    image += "global " + global_name(i) + " " + std::to_string(plan_.memory[i].bytes) + "\n";
  }
  CUmodule loaded = nullptr;
  check(cuModuleLoadData(&loaded, image.c_str()), "cuModuleLoadData");
  return loaded;
}

CUdeviceptr ProgramMemory::allocate(std::size_t memory) {
  const MemoryPlan& plan = plan_.memory[memory];
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  switch (plan.kind) {
    case MemoryKind::Alloc:
      check(cuMemAlloc_v2(&address, plan.bytes), "cuMemAlloc");
      break;
    case MemoryKind::Pitch:
      check(cuMemAllocPitch_v2(&address, &bytes, row_bytes, plan.bytes / row_bytes + 1, 4),
            "cuMemAllocPitch");
      break;
    case MemoryKind::Async:
      check(cuMemAllocAsync(&address, plan.bytes, nullptr), "cuMemAllocAsync");
      break;
    case MemoryKind::Pool: {
      if (pool_ == nullptr) {
        CUmemPoolProps properties{};
        properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        check(cuMemPoolCreate(&pool_, &properties), "cuMemPoolCreate");
      }
      check(cuMemAllocFromPoolAsync(&address, plan.bytes, pool_, nullptr),
            "cuMemAllocFromPoolAsync");
      break;
    }
    case MemoryKind::Global:
      check(cuModuleGetGlobal_v2(&address, &bytes, modules_[memory % num_modules],
                                 global_name(memory).c_str()),
            "cuModuleGetGlobal");
      break;
    case MemoryKind::Published:
      return publish(memory);
    case MemoryKind::Virtual:
      return map(memory);
    case MemoryKind::Shared: {
      check(cuMemAlloc_v2(&address, plan.bytes), "cuMemAlloc");
      CUipcMemHandle handle{};
      check(cuIpcGetMemHandle(&handle, address), "cuIpcGetMemHandle");
      break;
    }
    case MemoryKind::Managed:
      check(cuMemAllocManaged(&address, plan.bytes, CU_MEM_ATTACH_GLOBAL), "cuMemAllocManaged");
      break;
  }
  return address;
}

CUdeviceptr ProgramMemory::publish(std::size_t memory) {
  const std::string image = "simcuda image 1\nkernel " + std::string(publishing_kernel) +
                            "\nglobal published " + std::to_string(plan_.memory[memory].bytes) +
                            "\n";
  CUmodule module = nullptr;
  check(cuModuleLoadData(&module, image.c_str()), "cuModuleLoadData");
  modules_.push_back(module);
  CUfunction kernel = nullptr;
  check(cuModuleGetFunction(&kernel, module, publishing_kernel), "cuModuleGetFunction");
  CUdeviceptr cell = 0;
  CUdeviceptr address = 0;
  check(cuMemAlloc_v2(&cell, sizeof address), "cuMemAlloc");
  void* parameters[] = {&cell};
  check(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr), "publishing");
  check(cuMemcpyDtoH_v2(&address, cell, sizeof address), "reading what was published");
  check(cuMemFree_v2(cell), "cuMemFree");
  return address;
}

CUdeviceptr ProgramMemory::map(std::size_t memory) {
  const std::size_t bytes = whole(plan_.memory[memory].bytes, piece_bytes);
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUdeviceptr address = 0;
  check(cuMemAddressReserve(&address, bytes, 0, 0, 0), "cuMemAddressReserve");
  check(cuMemCreate(&mapped_[memory], bytes, &properties, 0), "cuMemCreate");
  check(cuMemMap(address, bytes, 0, mapped_[memory], 0), "cuMemMap");
  const CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  check(cuMemSetAccess(address, bytes, &access, 1), "cuMemSetAccess");
  return address;
}

void ProgramMemory::release(std::size_t memory) {
  const std::size_t mapped_bytes = whole(plan_.memory[memory].bytes, piece_bytes);
  switch (plan_.memory[memory].kind) {
    case MemoryKind::Async:
    case MemoryKind::Pool:
      check(cuMemFreeAsync(device_[memory], nullptr), "cuMemFreeAsync");
      check(cuStreamSynchronize(nullptr), "cuStreamSynchronize");
      return;
    case MemoryKind::Global:
    case MemoryKind::Published:
      return;
    case MemoryKind::Virtual:
      check(cuMemUnmap(device_[memory], mapped_bytes), "cuMemUnmap");
      check(cuMemRelease(mapped_[memory]), "cuMemRelease");
      return check(cuMemAddressFree(device_[memory], mapped_bytes), "cuMemAddressFree");
    default:
      check(cuMemFree_v2(device_[memory]), "cuMemFree");
  }
}

void ProgramMemory::fill() {
  Random random(plan_.seed ^ 0xf111);
  for (std::size_t i = 0; i < device_.size(); ++i) {
    std::vector<std::uint8_t> values(plan_.memory[i].bytes);
    for (std::uint8_t& value : values) value = static_cast<std::uint8_t>(random.bits());
    check(cuMemcpyHtoD_v2(device_[i], values.data(), values.size()), "filling memory");
  }
  std::vector<CUdeviceptr> table;
  for (const std::size_t one : plan_.table) table.push_back(buffer(one));
  check(cuMemcpyHtoD_v2(buffer(plan_.table_buffer), table.data(), table.size() * sizeof table[0]),
        "filling the table");
  for (std::size_t i = 0; i < host_.size(); ++i) {
    for (std::uint32_t word = 0; word < plan_.pinned[i].words; ++word) {
      host_[i][word] = static_cast<std::uint32_t>(random.bits());
    }
  }
  check(cuCtxSynchronize(), "cuCtxSynchronize");
}

CUdeviceptr ProgramMemory::buffer(std::size_t buffer) const {
  const BufferPlan& plan = plan_.buffers[buffer];
  return device_[plan.memory] + plan.first_byte;
}

std::uint64_t ProgramMemory::digest() const {
  std::uint64_t digest = empty_digest;
  for (std::size_t i = 0; i < device_.size(); ++i) {
    auto values = bytes_of(device_[i], plan_.memory[i].bytes);
    if (i == plan_.buffers[plan_.table_buffer].memory) {
      for (std::size_t entry = 0; entry < plan_.table.size(); ++entry) {
        CUdeviceptr address = 0;
        std::memcpy(&address, &values[entry * sizeof address], sizeof address);
        for (const std::size_t one : plan_.table) {
          if (buffer(one) == address) address = one;
        }
        std::memcpy(&values[entry * sizeof address], &address, sizeof address);
      }
    }
    digest = add_to_digest(digest, values.data(), values.size());
  }
  for (std::size_t i = 0; i < num_modules; ++i) {
    const auto counters = bytes_of(counters_of(modules_[i]), num_counters * 4);
    digest = add_to_digest(digest, counters.data(), counters.size());
  }
  for (std::size_t i = 0; i < host_.size(); ++i) {
    digest = add_to_digest(digest, host_[i], std::size_t{plan_.pinned[i].words} * 4);
  }
  return digest;
}
