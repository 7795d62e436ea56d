#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/driver/byte_source.hpp"

namespace contextune::gpu {

/// Which memory a kernel reads and writes, as far as its code shows. A value.
struct KernelAccess {
  /// Eight bytes of a parameter that may be an address, or the address of a variable.
  struct Place {
    static constexpr std::uint32_t anywhere = 0xffffffff;
    std::uint32_t parameter = 0;
    std::uint32_t offset_bytes = 0;  ///< in the parameter, or anywhere in it
    /// The contents decide where the kernel goes, or which memory it touches.
    bool steers = false;
    std::string variable{};  ///< of the kernel's module, as it is called there; "": a parameter's
    bool operator==(const Place&) const = default;
  };
  /// Memory that is found from these places: at least one of them holds its address.
  struct Use {
    std::uint64_t bases = 0;  ///< bit i: places[i]
    bool reads = false;
    bool writes = false;
    bool is_indirect = false;  ///< what was read has a part in the address
    bool operator==(const Use&) const = default;
  };
  static constexpr std::size_t most_places = 62;

  std::string unknown;  ///< why the rest says nothing, as a clause; "": it says all
  std::vector<Place> places;
  std::vector<Use> uses;
};

/// By symbol.
using KernelAccesses = std::map<std::string, KernelAccess, std::less<>>;

/// Reads the kernels of PTX. Every value is traced to the parameters and the memory that it comes
/// from, in no order and over all paths: what is not said is not so. A kernel that calls functions,
/// or finds addresses in memory is unknown. Constants are read by everyone and written by nobody.
[[nodiscard]] KernelAccesses read_ptx_accesses(std::string_view text);

/// The same of the simulated driver's text image, which says it in lines like `access axpy 1=r
/// 2=rw! total=rw`: the numbers of parameters and the names of variables, and a `!` behind what
/// steers.
[[nodiscard]] KernelAccesses read_simulated_accesses(std::string_view text);

/// The same of an image that a kernel of this machine code was loaded from. A fatbin is read by the
/// PTX that the machine code was made from, which is there if that is of the same architecture.
/// Empty: there is none.
[[nodiscard]] KernelAccesses read_image_accesses(const ByteSource& image, int binary_version);

}  // namespace contextune::gpu
