#pragma once

#include "operation.hpp"

namespace simcuda {

/// Moves the rows of a copy.
void copy_rows(const CopyOperation& copy);
/// Writes the elements of a memset.
void set_rows(const SetOperation& set);
/// Copies the source into memory of the driver, as the real driver does with pageable memory, and
/// gives back the copy that reads from there. `keep` owns that memory.
[[nodiscard]] CopyOperation staged(const CopyOperation& copy,
                                   std::shared_ptr<std::vector<std::byte>>& keep);
/// Flips one bit of the byte at an address.
void flip_bit(std::uintptr_t address);

}  // namespace simcuda
