#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gpu/driver/byte_source.hpp"

namespace contextune::gpu {

/// An entry of a fatbin.
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

/// The wrapper that the CUDA runtime's compiler makes around a fatbin, and hands to the driver.
struct FatBinaryWrapper {
  std::uint32_t magic = 0;
  std::uint32_t version = 0;
  const void* fat_binary = nullptr;
  const void* others = nullptr;

  static constexpr std::uint32_t right_magic = 0x466243b1;
  [[nodiscard]] bool is_valid() const noexcept { return magic == right_magic; }
  /// The driver links further fatbins to it at the load.
  [[nodiscard]] bool is_linked_at_load() const noexcept {
    return version != 1 && others != nullptr;
  }
};

/// Header and entries, in bytes. Empty: there is no fatbin.
[[nodiscard]] std::optional<std::uint64_t> fat_binary_bytes(const ByteSource& image) noexcept;

/// @param why as of read_kernel_image
[[nodiscard]] std::optional<std::vector<FatBinaryEntry>> read_fat_binary(const ByteSource& image,
                                                                         std::string& why);

/// The entry's content, uncompressed. Needs as much memory as that and its stored form.
/// @param why as of read_kernel_image
[[nodiscard]] std::optional<std::string> content_of(const ByteSource& image,
                                                    const FatBinaryEntry& entry, std::string& why);

/// The same into memory.
/// @param to as many bytes as the content has
/// @return false: `why` is set, and anything may have been written
[[nodiscard]] bool read_content(const ByteSource& image, const FatBinaryEntry& entry,
                                std::span<char> to, std::string& why);

/// Writes a new fatbin from some of another one's entries.
class FatBinaryWriter {
 public:
  /// @param image the other fatbin
  explicit FatBinaryWriter(const ByteSource& image) noexcept : image_(image) {}

  /// That an entry takes.
  [[nodiscard]] static std::uint64_t bytes_as_stored(const FatBinaryEntry& entry) noexcept;
  [[nodiscard]] static std::uint64_t bytes_uncompressed(const FatBinaryEntry& entry) noexcept;
  /// That the new fatbin's header takes.
  [[nodiscard]] static std::uint64_t header_bytes() noexcept;

  /// @param to where the new fatbin begins
  /// @param entries bytes of all of them
  static void put_header(char* to, std::uint64_t entries) noexcept;
  /// @return false: the fatbin is cut off
  [[nodiscard]] bool put_as_stored(char* to, const FatBinaryEntry& entry) const noexcept;
  /// The header of an entry whose content is stored uncompressed. @return where that goes; null:
  /// the fatbin is cut off
  [[nodiscard]] char* put_uncompressed(char* to, const FatBinaryEntry& entry) const noexcept;

 private:
  const ByteSource& image_;
};

}  // namespace contextune::gpu
