#pragma once

#include <cstdint>
#include <map>

#include "cuda_api.hpp"
#include "objects.hpp"

namespace simcuda {

/// Physical memory of a device: a file in memory, which may be mapped in several places.
struct Allocation : Object {
  static constexpr Kind kind = Kind::allocation;
  Allocation() : Object(kind) {}
  ~Allocation() override;

  CUmemAllocationProp properties{};
  std::size_t bytes = 0;
  int file = -1;
  unsigned references = 1;  // handles that the program holds
  unsigned mappings = 0;
};

/// Reserved addresses and what is mapped there. Guarded by the driver's lock; all members throw
/// Failure, most of them INVALID_VALUE.
class VirtualMemory {
 public:
  static constexpr std::size_t granularity = 2 << 20;

  std::uintptr_t reserve(std::size_t bytes, std::size_t alignment);
  void free(std::uintptr_t begin, std::size_t bytes);
  [[nodiscard]] Allocation& create(std::size_t bytes, const CUmemAllocationProp& properties);
  /// Gives one handle back. The memory goes with the last handle and the last mapping.
  void release(Allocation& allocation);
  void map(std::uintptr_t begin, std::size_t bytes, std::size_t offset, Allocation& allocation);
  /// Takes away all mappings of a range that consists of whole ones.
  void unmap(std::uintptr_t begin, std::size_t bytes);
  void set_access(std::uintptr_t begin, std::size_t bytes, const CUmemAccessDesc& access);
  [[nodiscard]] CUmemAccess_flags access(std::uintptr_t address, int device) const;
  /// What is mapped at an address.
  [[nodiscard]] Allocation& at(std::uintptr_t address) const;

 private:
  struct Mapping {
    std::size_t bytes = 0;
    Allocation* allocation = nullptr;
    CUmemAccess_flags access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  };
  using Mappings = std::map<std::uintptr_t, Mapping>;

  [[nodiscard]] std::map<std::uintptr_t, std::size_t>::iterator reservation(std::uintptr_t begin,
                                                                            std::size_t bytes);
  [[nodiscard]] Mappings::const_iterator mapping(std::uintptr_t address) const;
  /// The mappings of a range of whole ones without a gap.
  [[nodiscard]] std::pair<Mappings::iterator, Mappings::iterator> whole(std::uintptr_t begin,
                                                                        std::size_t bytes);
  static void destroy_if_unused(Allocation& allocation);

  std::map<std::uintptr_t, std::size_t> reservations_;
  Mappings mappings_;
};

}  // namespace simcuda
