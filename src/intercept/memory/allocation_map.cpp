#include "intercept/memory/allocation_map.hpp"

#include <algorithm>
#include <utility>

namespace contextune::intercept {
namespace {

constexpr const char* no_memory = "there was no memory to remember the program's allocations in";
constexpr const char* missed_release =
    "the driver gave out memory that the program had not been seen to give back";

}  // namespace

AllocationMap::AllocationMap(const std::uint32_t* missed, bool (*is_of_nccl)()) noexcept
    : missed_(missed), is_of_nccl_(is_of_nccl) {
  if (missed == nullptr) give_up("without the frontend, the program's allocations are not seen");
}

/// Every change that is noted goes through here.
template <typename Body>
void AllocationMap::change(Body&& body) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    if (body()) version_.fetch_add(1, std::memory_order_release);
  } catch (...) {
    give_up(no_memory);
  }
}

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

void AllocationMap::note_outside(const Allocation& allocation) noexcept {
  int first = first_device_.load(std::memory_order_relaxed);
  if (first < 0 && allocation.device >= 0) {
    first = allocation.device;
    first_device_.store(first, std::memory_order_release);
  }
  if (allocation.is_outside_of(first)) outside_version_.fetch_add(1, std::memory_order_release);
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

bool AllocationMap::has_surface_arrays() const noexcept {
  const std::lock_guard lock(mutex_);
  return std::any_of(arrays_.begin(), arrays_.end(),
                     [](const auto& one) { return one.second.surface; });
}

const char* AllocationMap::incomplete() const noexcept {
  if (missed_ != nullptr && __atomic_load_n(missed_, __ATOMIC_ACQUIRE) != 0) {
    return "the program used the driver before its allocations could be seen";
  }
  return why_.load(std::memory_order_acquire);
}

void AllocationMap::give_up(const char* why) noexcept {
  const char* none = nullptr;
  if (why_.compare_exchange_strong(none, why, std::memory_order_acq_rel)) {
    version_.fetch_add(1, std::memory_order_release);
  }
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
  rest.allocation.serial = ++last_serial_;
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
  if (first != last && entry.owner == nullptr) give_up(missed_release);
  live_.erase(first, last);
  allocation.serial = ++last_serial_;
  live_.emplace(allocation.begin, entry);
  note_outside(allocation);
  return !allocation.of_nccl;
}

void AllocationMap::add(const Allocation& given) noexcept {
  if (given.begin == 0 || given.bytes == 0) return;
  Allocation allocation = given;
  allocation.of_nccl = is_of_nccl_ != nullptr && is_of_nccl_();
  change([&] {
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
  change([&] {
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
  change([&] {
    library_of_module_[module] = library;
    return false;
  });
}

void AllocationMap::forget_variables(const void* owner) noexcept {
  change([&] {
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
  change([&] {
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
    note_outside(place->second.allocation);
    leaving_.insert(live_.extract(place));
    return is_of_program;
  });
}

void AllocationMap::unmap(CUdeviceptr begin, std::size_t bytes) noexcept {
  change([&] {
    split_at(begin);
    split_at(begin + bytes);
    bool any = false;
    auto place = live_.lower_bound(begin);
    while (place != live_.end() && place->first < begin + bytes) {
      const auto one = place++;
      if (one->second.physical == 0) continue;
      any = any || !one->second.allocation.of_nccl;
      note_outside(one->second.allocation);
      auto node = live_.extract(one);
      node.key() = begin;
      leaving_.insert(std::move(node));
    }
    return any;
  });
}

void AllocationMap::released(CUdeviceptr begin, bool success) noexcept {
  change([&] {
    bool any = false;
    for (auto place = leaving_.find(begin); place != leaving_.end(); place = leaving_.find(begin)) {
      auto node = leaving_.extract(place);
      if (success) continue;
      node.key() = node.mapped().allocation.begin;
      any = any || !node.mapped().allocation.of_nccl;
      note_outside(node.mapped().allocation);
      live_.insert(std::move(node));
    }
    return any;
  });
}

void AllocationMap::add_handle(CUmemGenericAllocationHandle handle, int device,
                               bool imported) noexcept {
  change([&] {
    handles_.add(handle, device, imported);
    return false;
  });
}

void AllocationMap::retain_handle(CUmemGenericAllocationHandle handle,
                                  CUdeviceptr address) noexcept {
  change([&] {
    const auto place = first_overlap(address);
    if (place == live_.end() || place->first > address || place->second.physical == 0) return false;
    const Allocation& known = place->second.allocation;
    handles_.retain(handle, {place->second.physical, known.device,
                             known.kind == AllocationKind::Imported, known.exported});
    return false;
  });
}

void AllocationMap::release_handle(CUmemGenericAllocationHandle handle) noexcept {
  change([&] {
    handles_.release(handle);
    return false;
  });
}

void AllocationMap::export_handle(CUmemGenericAllocationHandle handle) noexcept {
  change([&] {
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
  change([&] {
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
  change([&] {
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
  change([&] {
    bool any = false;
    for (auto place = first_overlap(begin); place != live_.end() && place->first < begin + bytes;
         ++place) {
      place->second.allocation.exported = true;
      any = any || !place->second.allocation.of_nccl;
    }
    return any;
  });
}

void AllocationMap::add_array(const void* handle, CUcontext context, bool surface) noexcept {
  change([&] {
    Array& array = arrays_.try_emplace(handle, Array{context, false, 0}).first->second;
    array.context = context;
    array.surface = array.surface || surface;
    ++array.references;
    return true;
  });
}

void AllocationMap::remove_array(const void* handle) noexcept {
  change([&] {
    const auto place = arrays_.find(handle);
    if (place == arrays_.end()) return false;
    if (--place->second.references == 0) arrays_.erase(place);
    return true;
  });
}

void AllocationMap::forget_context(CUcontext context) noexcept {
  if (context == nullptr) return;
  change([&] {
    const auto memory = std::erase_if(
        live_, [&](const auto& one) { return one.second.allocation.context == context; });
    const auto arrays =
        std::erase_if(arrays_, [&](const auto& one) { return one.second.context == context; });
    return memory + arrays != 0;
  });
}

void AllocationMap::forget_device(int device, CUcontext primary) noexcept {
  forget_context(primary);
  change([&] {
    const auto is_there = [&](const auto& one) {
      const Allocation& allocation = one.second.allocation;
      return allocation.device == device || (primary == nullptr && allocation.context != nullptr);
    };
    if (std::any_of(live_.begin(), live_.end(), is_there)) {
      give_up("a device was reset while it held memory that may outlive that");
    }
    return false;
  });
}

}  // namespace contextune::intercept
