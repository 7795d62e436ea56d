#include "memory.hpp"

#include <cstdlib>
#include <iterator>

#include "failure.hpp"

namespace simcuda {

namespace {

// As cuMemAlloc aligns.
constexpr std::size_t block_alignment = 512;

bool on_device(Memory::Kind kind) {
  return kind == Memory::Kind::device || kind == Memory::Kind::managed;
}

}  // namespace

Memory::Block& Memory::allocate(std::size_t bytes, Kind kind, int device, CUcontext context,
                                std::size_t limit_bytes) {
  require(bytes > 0);
  const std::size_t rounded = (bytes + block_alignment - 1) / block_alignment * block_alignment;
  require(rounded >= bytes, CUDA_ERROR_OUT_OF_MEMORY);
  if (on_device(kind)) charge(device, rounded, limit_bytes);
  void* const memory = std::aligned_alloc(block_alignment, rounded);
  if (memory == nullptr && on_device(kind)) give_back(device, rounded);
  require(memory != nullptr, CUDA_ERROR_OUT_OF_MEMORY);
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  Block& block = blocks_[begin];
  block = {begin, bytes, kind, device, context, 0, next_id_++};
  return block;
}

Memory::Block& Memory::register_host(void* begin, std::size_t bytes, unsigned flags, int device,
                                     CUcontext context) {
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  require(address != 0 && bytes > 0);
  require(find(address) == nullptr && find(address + bytes - 1) == nullptr,
          CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  Block& block = blocks_[address];
  block = {address, bytes, Kind::registered, device, context, flags, next_id_++};
  return block;
}

const Memory::Block* Memory::find(std::uintptr_t address) const {
  const auto after = blocks_.upper_bound(address);
  if (after == blocks_.begin()) return nullptr;
  const Block& block = std::prev(after)->second;
  return address < block.begin + block.bytes ? &block : nullptr;
}

bool Memory::covers(std::uintptr_t begin, std::size_t bytes) const {
  for (std::uintptr_t at = begin; at < begin + bytes;) {
    const Block* const block = find(at);
    if (block == nullptr || !block->accessible) return false;
    at = block->begin + block->bytes;
  }
  return true;
}

void Memory::charge(int device, std::size_t bytes, std::size_t limit_bytes) {
  std::size_t& used = used_[device];
  require(used + bytes <= limit_bytes, CUDA_ERROR_OUT_OF_MEMORY);
  used += bytes;
}

void Memory::give_back(int device, std::size_t bytes) {
  used_[device] -= bytes;
}

void Memory::add_mapped(std::uintptr_t begin, std::size_t bytes, int device) {
  Block& block = blocks_[begin];
  block = {begin, bytes, Kind::mapped, device, nullptr, 0, next_id_++};
  block.accessible = false;
}

void Memory::set_accessible(std::uintptr_t begin, bool accessible) {
  if (const auto found = blocks_.find(begin); found != blocks_.end())
    found->second.accessible = accessible;
}

void Memory::count_opened(std::uintptr_t begin, int difference) {
  if (const auto found = blocks_.find(begin); found != blocks_.end())
    found->second.opened += difference;
}

void Memory::mark_freed(std::uintptr_t begin) {
  if (const auto found = blocks_.find(begin); found != blocks_.end()) found->second.freed = true;
}

const Memory::Block* Memory::at(std::uintptr_t begin) const {
  const auto found = blocks_.find(begin);
  return found == blocks_.end() ? nullptr : &found->second;
}

void Memory::release(std::uintptr_t begin) {
  const auto found = blocks_.find(begin);
  if (found == blocks_.end()) return;
  const Block& block = found->second;
  if (on_device(block.kind))
    give_back(block.device,
              (block.bytes + block_alignment - 1) / block_alignment * block_alignment);
  if (block.kind != Kind::registered && block.kind != Kind::mapped)
    std::free(reinterpret_cast<void*>(block.begin));
  blocks_.erase(found);
}

void Memory::release_all(CUcontext context) {
  for (auto at = blocks_.begin(); at != blocks_.end();) {
    const auto next = std::next(at);
    if (at->second.context == context) release(at->first);
    at = next;
  }
}

std::size_t Memory::used_bytes(int device) const {
  const auto found = used_.find(device);
  return found == used_.end() ? 0 : found->second;
}

}  // namespace simcuda
