// What copies and memsets do to memory.
#include "copy_effect.hpp"

#include <cstring>

namespace simcuda {

void copy_rows(const CopyOperation& copy) {
  for (std::size_t z = 0; z < copy.depth; ++z)
    for (std::size_t y = 0; y < copy.height; ++y)
      std::memmove(reinterpret_cast<void*>(copy.destination + z * copy.destination_slice +
                                           y * copy.destination_pitch),
                   reinterpret_cast<const void*>(copy.source + z * copy.source_slice +
                                                 y * copy.source_pitch),
                   copy.width_bytes);
}

void set_rows(const SetOperation& set) {
  for (std::size_t y = 0; y < set.height; ++y) {
    auto* const row = reinterpret_cast<unsigned char*>(set.destination + y * set.pitch);
    if (set.element_bytes == 1) {
      std::memset(row, static_cast<int>(set.value & 0xFFU), set.width);
      continue;
    }
    for (std::size_t x = 0; x < set.width; ++x)
      std::memcpy(row + x * set.element_bytes, &set.value, set.element_bytes);
  }
}

CopyOperation staged(const CopyOperation& copy, std::shared_ptr<std::vector<std::byte>>& keep) {
  keep = std::make_shared<std::vector<std::byte>>(copy.bytes());
  CopyOperation in = copy;
  in.destination = reinterpret_cast<std::uintptr_t>(keep->data());
  in.destination_pitch = copy.width_bytes;
  in.destination_slice = copy.width_bytes * copy.height;
  copy_rows(in);
  CopyOperation out = copy;
  out.source = in.destination;
  out.source_pitch = in.destination_pitch;
  out.source_slice = in.destination_slice;
  return out;
}

void flip_bit(std::uintptr_t address) {
  auto* const byte = reinterpret_cast<unsigned char*>(address);
  *byte = static_cast<unsigned char>(*byte ^ 1U);
}

}  // namespace simcuda
