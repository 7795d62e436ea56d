#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "gpu/driver/byte_source.hpp"
#include "gpu/image/entry_wait.hpp"
#include "gpu/image/image_bytes.hpp"

namespace contextune::gpu {

/// How a kernel's loaded code behaves between its neighbours in a stream.
struct KernelOrder {
  bool waits = false;     ///< by our entry wait
  bool triggers = false;  ///< it, or what it may call, lets the next kernel start early
  bool launches = false;  ///< its image can launch from the device
  bool maps = false;      ///< copies through tensor maps without a fence for them
};

/// An image for the driver in place of the program's own.
struct SplicedImage {
  ImageBytes bytes;              ///< a fatbin or machine code; empty: no kernel was given a wait
  std::uint64_t code_bytes = 0;  ///< of the machine code that was read
  /// Uncompressing took so long, which the driver need not do again: of several pieces it takes
  /// one, so that of the quickest counts.
  double spared_seconds = 0;
  std::map<std::string, KernelOrder, std::less<>> kernels;  ///< by symbol
  std::map<NoEntryWait, std::size_t> refused;               ///< kernels by reason
};

/// Why an image is left alone that has more machine code than may be read.
inline constexpr std::string_view too_much_code = "it has more machine code than is worth reading";

/// Gives the kernels of an image a wait at their entry.
///
/// In a fatbin, every piece of machine code for sm_90 is changed and stored uncompressed, and PTX
/// stays. Pieces for other architectures, which no such GPU takes, are left out.
/// @param image      a fatbin or machine code
/// @param most_bytes of machine code that may be read
/// @param wanted     asked for each kernel that could be given a wait
/// @param why        set, in a sentence's clause, if the image is to be left alone
[[nodiscard]] std::optional<SplicedImage> spliced_image(
    const ByteSource& image, std::uint64_t most_bytes,
    const std::function<bool(const CodeKernel&)>& wanted, std::string& why);

}  // namespace contextune::gpu
