#include "intercept/memory/allocation_map.hpp"

#include <algorithm>
#include <utility>

namespace contextune::intercept {

std::vector<Allocation> AllocationMap::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<Allocation> list;
  list.reserve(live_.size());
  for (const auto& [begin, entry] : live_) list.push_back(entry.allocation);
  return list;
}

std::vector<Allocation> AllocationMap::outside_of(int device) const {
  const std::lock_guard lock(mutex_);
  std::vector<Allocation> list;
  for (const auto& [begin, entry] : live_) {
    if (entry.allocation.is_outside_of(device)) list.push_back(entry.allocation);
  }
  return list;
}

std::size_t AllocationMap::device_bytes_since(std::uint64_t serial) const noexcept {
  const std::lock_guard lock(mutex_);
  std::size_t bytes = 0;
  for (const auto& [begin, entry] : live_) {
    const Allocation& one = entry.allocation;
    const bool is_on_device = one.kind == AllocationKind::Device ||
                              one.kind == AllocationKind::Pool ||
                              one.kind == AllocationKind::Virtual;
    if (one.serial > serial && is_on_device) bytes += one.bytes;
  }
  return bytes;
}

std::optional<Allocation> AllocationMap::find(CUdeviceptr address) const noexcept {
  const std::lock_guard lock(mutex_);
  auto place = live_.upper_bound(address);
  if (place == live_.begin()) return std::nullopt;
  const Allocation& candidate = std::prev(place)->second.allocation;
  return address < candidate.end() ? std::optional(candidate) : std::nullopt;
}

/// The first entry that ends after `begin`.
AllocationMap::Live::iterator AllocationMap::first_overlap(CUdeviceptr begin) noexcept {
  auto place = live_.upper_bound(begin);
  if (place != live_.begin() && std::prev(place)->second.allocation.end() > begin) --place;
  return place;
}

/// Makes two of the entry that has `address` inside.
void AllocationMap::split_at(CUdeviceptr address) {
  const auto place = first_overlap(address);
  if (place == live_.end() || place->first >= address) return;
  Entry rest = place->second;
  rest.allocation.bytes = rest.allocation.end() - address;
  rest.allocation.begin = address;
  rest.allocation.serial = changes_.next_serial();
  live_.emplace(address, rest);
  place->second.allocation.bytes = address - place->first;
}

bool AllocationMap::insert(Entry entry) {
  Allocation& allocation = entry.allocation;
  split_at(allocation.begin);
  split_at(allocation.end());
  const auto first = live_.lower_bound(allocation.begin);
  const auto last = live_.lower_bound(allocation.end());
  // Two names may share a variable, or a part of one.
  if (first != last && entry.owner == nullptr) {
    changes_.give_up("the driver gave out memory that the program had not been seen to give back");
  }
  live_.erase(first, last);
  allocation.serial = changes_.next_serial();
  live_.emplace(allocation.begin, entry);
  changes_.note_outside(allocation);
  return !allocation.of_nccl;
}

void AllocationMap::add(const Allocation& given) noexcept {
  if (given.begin == 0 || given.bytes == 0) return;
  Allocation allocation = given;
  allocation.of_nccl = is_of_nccl_ != nullptr && is_of_nccl_();
  changes_.make(mutex_, [&] {
    const auto known = live_.find(allocation.begin);
    if (known != live_.end() && known->second.physical == 0 &&
        allocation.kind == AllocationKind::Imported &&
        known->second.allocation.kind == AllocationKind::Imported) {
      ++known->second.references;
      return false;
    }
    return insert({allocation});
  });
}

void AllocationMap::add_variable(const Allocation& allocation, const void* owner) noexcept {
  if (allocation.begin == 0 || allocation.bytes == 0) return;
  changes_.make(mutex_, [&] {
    const auto known = live_.find(allocation.begin);
    if (known != live_.end() && known->second.owner != nullptr &&
        known->second.allocation.bytes == allocation.bytes) {
      known->second.owner = owner;
      return false;
    }
    insert({allocation, 0, owner});
    return true;
  });
}

void AllocationMap::add_module(const void* module, const void* library) noexcept {
  changes_.make(mutex_, [&] {
    library_of_module_[module] = library;
    return false;
  });
}

void AllocationMap::forget_variables(const void* owner) noexcept {
  changes_.make(mutex_, [&] {
    const auto is_gone = [&](const auto& one) {
      const void* const module = one.second.owner;
      if (module == nullptr || module == owner) return module == owner;
      const auto place = library_of_module_.find(module);
      return place != library_of_module_.end() && place->second == owner;
    };
    const bool any = std::erase_if(live_, is_gone) != 0;
    std::erase_if(library_of_module_,
                  [&](const auto& one) { return one.first == owner || one.second == owner; });
    return any;
  });
}

void AllocationMap::release(CUdeviceptr begin) noexcept {
  changes_.make(mutex_, [&] {
    const auto place = live_.find(begin);
    // Other memory is not given back like this, and the driver will say so.
    if (place == live_.end() || place->second.owner != nullptr || place->second.physical != 0) {
      return false;
    }
    if (place->second.references > 1) {
      --place->second.references;
      return false;
    }
    const bool is_of_program = !place->second.allocation.of_nccl;
    changes_.note_outside(place->second.allocation);
    leaving_.insert(live_.extract(place));
    return is_of_program;
  });
}

void AllocationMap::unmap(CUdeviceptr begin, std::size_t bytes) noexcept {
  changes_.make(mutex_, [&] {
    split_at(begin);
    split_at(begin + bytes);
    bool any = false;
    auto place = live_.lower_bound(begin);
    while (place != live_.end() && place->first < begin + bytes) {
      const auto one = place++;
      if (one->second.physical == 0) continue;
      any = any || !one->second.allocation.of_nccl;
      changes_.note_outside(one->second.allocation);
      auto node = live_.extract(one);
      node.key() = begin;
      leaving_.insert(std::move(node));
    }
    return any;
  });
}

void AllocationMap::released(CUdeviceptr begin, bool success) noexcept {
  changes_.make(mutex_, [&] {
    bool any = false;
    for (auto place = leaving_.find(begin); place != leaving_.end(); place = leaving_.find(begin)) {
      auto node = leaving_.extract(place);
      if (success) continue;
      node.key() = node.mapped().allocation.begin;
      any = any || !node.mapped().allocation.of_nccl;
      changes_.note_outside(node.mapped().allocation);
      live_.insert(std::move(node));
    }
    return any;
  });
}

void AllocationMap::add_handle(CUmemGenericAllocationHandle handle, int device,
                               bool imported) noexcept {
  changes_.make(mutex_, [&] {
    handles_.add(handle, device, imported);
    return false;
  });
}

void AllocationMap::retain_handle(CUmemGenericAllocationHandle handle,
                                  CUdeviceptr address) noexcept {
  changes_.make(mutex_, [&] {
    const auto place = first_overlap(address);
    if (place == live_.end() || place->first > address || place->second.physical == 0) return false;
    const Allocation& known = place->second.allocation;
    handles_.retain(handle, {place->second.physical, known.device,
                             known.kind == AllocationKind::Imported, known.exported});
    return false;
  });
}

void AllocationMap::release_handle(CUmemGenericAllocationHandle handle) noexcept {
  changes_.make(mutex_, [&] {
    handles_.release(handle);
    return false;
  });
}

void AllocationMap::export_handle(CUmemGenericAllocationHandle handle) noexcept {
  changes_.make(mutex_, [&] {
    const std::uint64_t id = handles_.set_exported(handle);
    bool any = false;
    for (auto& [begin, entry] : live_) {
      if (id == 0 || entry.physical != id) continue;
      entry.allocation.exported = true;
      any = any || !entry.allocation.of_nccl;
    }
    return any;
  });
}

void AllocationMap::map(CUdeviceptr begin, std::size_t bytes,
                        CUmemGenericAllocationHandle handle) noexcept {
  if (bytes == 0) return;
  const bool of_nccl = is_of_nccl_ != nullptr && is_of_nccl_();
  changes_.make(mutex_, [&] {
    Entry entry;
    entry.allocation.of_nccl = of_nccl;
    entry.allocation.begin = begin;
    entry.allocation.bytes = bytes;
    entry.allocation.accessible = false;
    // A handle of unknown origin may be anybody's.
    const PhysicalMemory* const memory = handles_.find(handle);
    const bool own = memory != nullptr && !memory->imported;
    entry.allocation.kind = own ? AllocationKind::Virtual : AllocationKind::Imported;
    entry.allocation.device = memory != nullptr ? memory->device : -1;
    entry.allocation.exported = memory != nullptr && memory->exported;
    entry.physical = memory != nullptr ? memory->id : MemoryHandles::unknown;
    return insert(entry);
  });
}

void AllocationMap::set_access(CUdeviceptr begin, std::size_t bytes, int device,
                               bool read_write) noexcept {
  changes_.make(mutex_, [&] {
    bool any = false;
    for (auto place = first_overlap(begin); place != live_.end() && place->first < begin + bytes;
         ++place) {
      Allocation& one = place->second.allocation;
      if (place->second.physical == 0 || (one.device >= 0 && one.device != device)) continue;
      const bool whole = one.begin >= begin && one.end() <= begin + bytes;
      if (one.accessible == read_write || (read_write && !whole)) continue;
      one.accessible = read_write;
      any = any || !one.of_nccl;
    }
    return any;
  });
}

void AllocationMap::set_exported(CUdeviceptr begin, std::size_t bytes) noexcept {
  changes_.make(mutex_, [&] {
    bool any = false;
    for (auto place = first_overlap(begin); place != live_.end() && place->first < begin + bytes;
         ++place) {
      place->second.allocation.exported = true;
      any = any || !place->second.allocation.of_nccl;
    }
    return any;
  });
}

void AllocationMap::forget_context(CUcontext context) noexcept {
  changes_.make(mutex_, [&] {
    return std::erase_if(live_, [&](const auto& one) {
             return one.second.allocation.context == context;
           }) != 0;
  });
}

}  // namespace contextune::intercept
