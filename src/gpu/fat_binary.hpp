#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/byte_source.hpp"

namespace contextune::gpu {

/// One entry of a fatbin.
struct FatBinaryEntry {
  enum class Kind { Ptx, Cubin, Other };
  enum class Compression { None, Lz4, Zstd };
  Kind kind = Kind::Other;
  int architecture = 0;      ///< 90 for sm_90 or compute_90
  std::uint64_t begin = 0;   ///< offset of its header
  std::uint64_t offset = 0;  ///< of the content, as it is stored
  std::uint64_t stored = 0;  ///< bytes
  std::uint64_t end = 0;     ///< offset of the next entry
  std::uint64_t bytes = 0;   ///< uncompressed
  Compression compression = Compression::None;
};

inline constexpr std::uint32_t fat_binary_magic = 0xba55ed50;

/// Header and entries, in bytes. Empty: there is no fatbin.
[[nodiscard]] std::optional<std::uint64_t> fat_binary_bytes(const ByteSource& image) noexcept;

/// @param why as of read_kernel_image
[[nodiscard]] std::optional<std::vector<FatBinaryEntry>> read_fat_binary(const ByteSource& image,
                                                                         std::string& why);

/// The entry's content, uncompressed. Needs as much memory as that and its stored form.
/// @param why as of read_kernel_image
[[nodiscard]] std::optional<std::string> content_of(const ByteSource& image,
                                                    const FatBinaryEntry& entry, std::string& why);

/// Appends an entry to those of a new fatbin, with its content as it is stored.
/// @return false: the fatbin is cut off
[[nodiscard]] bool append_stored(const ByteSource& image, const FatBinaryEntry& entry,
                                 std::string& entries);

/// The same with another content, which is stored uncompressed.
[[nodiscard]] bool append_uncompressed(const ByteSource& image, const FatBinaryEntry& entry,
                                       std::string_view content, std::string& entries);

/// The fatbin of these entries.
[[nodiscard]] std::string fat_binary_of(std::string_view entries);

}  // namespace contextune::gpu
