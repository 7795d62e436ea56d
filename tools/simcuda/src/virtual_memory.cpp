#include "virtual_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <iterator>

#include "driver.hpp"

namespace simcuda {

namespace {

void* pointer(std::uintptr_t address) {
  return reinterpret_cast<void*>(address);
}

bool is_multiple(std::size_t value) {
  return value > 0 && value % VirtualMemory::granularity == 0;
}

int protection(CUmemAccess_flags access) {
  if (access == CU_MEM_ACCESS_FLAGS_PROT_NONE) return PROT_NONE;
  return access == CU_MEM_ACCESS_FLAGS_PROT_READ ? PROT_READ : PROT_READ | PROT_WRITE;
}

// Addresses that nobody may touch.
void* nothing_at(void* where, std::size_t bytes) {
  const int fixed = where == nullptr ? 0 : MAP_FIXED;
  void* const got =
      mmap(where, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);
  require(got != MAP_FAILED, CUDA_ERROR_OUT_OF_MEMORY);
  return got;
}

}  // namespace

Allocation::~Allocation() {
  if (file >= 0) close(file);
}

std::uintptr_t VirtualMemory::reserve(std::size_t bytes, std::size_t alignment) {
  require(is_multiple(bytes) && (alignment & (alignment - 1)) == 0);
  const std::size_t aligned = std::max(alignment, granularity);
  require(bytes + aligned > bytes, CUDA_ERROR_OUT_OF_MEMORY);
  const auto raw = reinterpret_cast<std::uintptr_t>(nothing_at(nullptr, bytes + aligned));
  const std::uintptr_t begin = (raw + aligned - 1) / aligned * aligned;
  if (begin > raw) munmap(pointer(raw), begin - raw);
  munmap(pointer(begin + bytes), raw + aligned - begin);
  reservations_[begin] = bytes;
  return begin;
}

std::map<std::uintptr_t, std::size_t>::iterator VirtualMemory::reservation(std::uintptr_t begin,
                                                                           std::size_t bytes) {
  const auto after = reservations_.upper_bound(begin);
  require(after != reservations_.begin());
  const auto found = std::prev(after);
  require(bytes <= found->second && begin - found->first <= found->second - bytes);
  return found;
}

void VirtualMemory::free(std::uintptr_t begin, std::size_t bytes) {
  const auto found = reservations_.find(begin);
  require(found != reservations_.end() && found->second == bytes);
  const auto mapped = mappings_.lower_bound(begin);
  require(mapped == mappings_.end() || mapped->first >= begin + bytes);
  munmap(pointer(begin), bytes);
  reservations_.erase(found);
}

Allocation& VirtualMemory::create(std::size_t bytes, const CUmemAllocationProp& properties) {
  Driver& state = driver();
  require(properties.type == CU_MEM_ALLOCATION_TYPE_PINNED && is_multiple(bytes));
  require(properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE, CUDA_ERROR_NOT_SUPPORTED);
  const int device = properties.location.id;
  state.memory.charge(device, bytes, state.device(device).profile.memory_bytes);
  auto* const allocation = state.handles.make<Allocation>();
  allocation->properties = properties;
  allocation->bytes = bytes;
  allocation->file = memfd_create("simcuda", MFD_CLOEXEC);
  if (allocation->file < 0 || ftruncate(allocation->file, static_cast<off_t>(bytes)) != 0) {
    release(*allocation);
    throw Failure{CUDA_ERROR_OUT_OF_MEMORY};
  }
  return *allocation;
}

void VirtualMemory::release(Allocation& allocation) {
  require(allocation.references > 0);
  --allocation.references;
  destroy_if_unused(allocation);
}

void VirtualMemory::destroy_if_unused(Allocation& allocation) {
  if (allocation.references > 0 || allocation.mappings > 0) return;
  driver().memory.give_back(allocation.properties.location.id, allocation.bytes);
  driver().handles.destroy(&allocation);
}

void VirtualMemory::map(std::uintptr_t begin, std::size_t bytes, std::size_t offset,
                        Allocation& allocation) {
  require(is_multiple(bytes) && begin % granularity == 0 && offset == 0);
  require(bytes <= allocation.bytes && allocation.references > 0);
  (void)reservation(begin, bytes);
  const auto next = mappings_.lower_bound(begin);
  require(next == mappings_.end() || next->first >= begin + bytes);
  require(mapping(begin) == mappings_.end());
  // Without access at first, as on a real device.
  require(mmap(pointer(begin), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, allocation.file, 0) !=
              MAP_FAILED,
          CUDA_ERROR_OUT_OF_MEMORY);
  mappings_[begin] = {bytes, &allocation, CU_MEM_ACCESS_FLAGS_PROT_NONE};
  ++allocation.mappings;
  driver().memory.add_mapped(begin, bytes, allocation.properties.location.id);
}

void VirtualMemory::unmap(std::uintptr_t begin, std::size_t bytes) {
  const auto [first, last] = whole(begin, bytes);
  for (auto at = first; at != last; ++at) {
    Driver& state = driver();
    state.device(at->second.allocation->properties.location.id)
        .cost.cache()
        .forget(at->first, at->second.bytes);
    state.memory.release(at->first);
    nothing_at(pointer(at->first), at->second.bytes);
    --at->second.allocation->mappings;
    destroy_if_unused(*at->second.allocation);
  }
  mappings_.erase(first, last);
}

void VirtualMemory::set_access(std::uintptr_t begin, std::size_t bytes,
                               const CUmemAccessDesc& access) {
  require(access.location.type == CU_MEM_LOCATION_TYPE_DEVICE, CUDA_ERROR_NOT_SUPPORTED);
  (void)driver().device(access.location.id);
  const auto [first, last] = whole(begin, bytes);
  for (auto at = first; at != last; ++at) {
    // What another device may do is not told apart.
    if (at->second.allocation->properties.location.id != access.location.id) continue;
    require(mprotect(pointer(at->first), at->second.bytes, protection(access.flags)) == 0);
    at->second.access = access.flags;
    driver().memory.set_accessible(at->first, access.flags != CU_MEM_ACCESS_FLAGS_PROT_NONE);
  }
}

CUmemAccess_flags VirtualMemory::access(std::uintptr_t address, int device) const {
  const auto found = mapping(address);
  require(found != mappings_.end());
  const bool own = found->second.allocation->properties.location.id == device;
  return own ? found->second.access : CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

Allocation& VirtualMemory::at(std::uintptr_t address) const {
  const auto found = mapping(address);
  require(found != mappings_.end());
  return *found->second.allocation;
}

VirtualMemory::Mappings::const_iterator VirtualMemory::mapping(std::uintptr_t address) const {
  const auto after = mappings_.upper_bound(address);
  if (after == mappings_.begin()) return mappings_.end();
  const auto found = std::prev(after);
  return address < found->first + found->second.bytes ? found : mappings_.end();
}

std::pair<VirtualMemory::Mappings::iterator, VirtualMemory::Mappings::iterator>
VirtualMemory::whole(std::uintptr_t begin, std::size_t bytes) {
  const auto first = mappings_.find(begin);
  auto last = first;
  std::uintptr_t at = begin;
  while (last != mappings_.end() && last->first == at && at < begin + bytes)
    at += (last++)->second.bytes;
  require(bytes > 0 && at == begin + bytes);
  return {first, last};
}

}  // namespace simcuda
