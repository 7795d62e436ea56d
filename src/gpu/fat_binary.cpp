#include "gpu/fat_binary.hpp"

#include <lz4.h>
#include <zstd.h>

#include <cstring>
#include <limits>

namespace contextune::gpu {
namespace {

struct Header {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t header_bytes;
  std::uint64_t bytes;  // of all entries
};
static_assert(sizeof(Header) == 16);

struct EntryHeader {
  std::uint16_t kind;
  std::uint16_t version;
  std::uint32_t header_bytes;
  std::uint64_t bytes;  // to the next entry
  std::uint32_t compressed_bytes;
  std::uint32_t options_offset;
  std::uint16_t minor;
  std::uint16_t major;
  std::uint32_t architecture;
  std::uint32_t name_offset;
  std::uint32_t name_bytes;
  std::uint64_t flags;
  std::uint64_t reserved;
  std::uint64_t uncompressed_bytes;
};
static_assert(sizeof(EntryHeader) == 64);

constexpr std::uint16_t kind_ptx = 1;
constexpr std::uint16_t kind_cubin = 2;
constexpr std::uint64_t flag_lz4 = 0x2000;
constexpr std::uint64_t flag_zstd = 0x8000;
constexpr std::size_t most_entries = 1 << 16;

FatBinaryEntry entry_of(const EntryHeader& header, std::uint64_t offset) {
  using Kind = FatBinaryEntry::Kind;
  using Compression = FatBinaryEntry::Compression;
  FatBinaryEntry entry;
  entry.kind = header.kind == kind_ptx     ? Kind::Ptx
               : header.kind == kind_cubin ? Kind::Cubin
                                           : Kind::Other;
  entry.architecture = static_cast<int>(header.architecture & 0xffff);
  entry.begin = offset;
  entry.offset = offset + header.header_bytes;
  entry.end = entry.offset + header.bytes;
  entry.compression = (header.flags & flag_zstd) != 0  ? Compression::Zstd
                      : (header.flags & flag_lz4) != 0 ? Compression::Lz4
                                                       : Compression::None;
  const bool compressed = entry.compression != Compression::None;
  entry.stored = compressed ? header.compressed_bytes : header.bytes;
  entry.bytes = compressed ? header.uncompressed_bytes : header.bytes;
  return entry;
}

/// Whether so much can come out: asked before memory is taken for it.
bool may_be(const FatBinaryEntry& entry, const std::string& stored) {
  constexpr std::uint64_t most_lz4_ratio = 255;
  if (entry.compression == FatBinaryEntry::Compression::Lz4) {
    return entry.bytes / most_lz4_ratio <= stored.size();
  }
  const auto bytes = ZSTD_getFrameContentSize(stored.data(), stored.size());
  return bytes == entry.bytes || bytes == ZSTD_CONTENTSIZE_UNKNOWN;
}

/// Whether exactly `content.size()` bytes came out.
bool uncompress(const std::string& stored, FatBinaryEntry::Compression compression,
                std::string& content) {
  if (compression == FatBinaryEntry::Compression::Zstd) {
    return ZSTD_decompress(content.data(), content.size(), stored.data(), stored.size()) ==
           content.size();
  }
  constexpr auto most = static_cast<std::size_t>(std::numeric_limits<int>::max());
  if (content.size() > most || stored.size() > most) return false;
  const int bytes =
      LZ4_decompress_safe(stored.data(), content.data(), static_cast<int>(stored.size()),
                          static_cast<int>(content.size()));
  return bytes >= 0 && static_cast<std::size_t>(bytes) == content.size();
}

}  // namespace

std::optional<std::uint64_t> fat_binary_bytes(const ByteSource& image) noexcept {
  const auto header = image.read<Header>(0);
  if (!header || header->magic != fat_binary_magic || header->header_bytes < sizeof(Header) ||
      header->bytes > most_image_bytes) {
    return std::nullopt;
  }
  return header->header_bytes + header->bytes;
}

std::optional<std::vector<FatBinaryEntry>> read_fat_binary(const ByteSource& image,
                                                           std::string& why) {
  const auto bytes = fat_binary_bytes(image);
  const auto header = image.read<Header>(0);
  if (!bytes || !header) {
    why = "its fatbin has no header that is known";
    return std::nullopt;
  }
  std::vector<FatBinaryEntry> entries;
  for (std::uint64_t offset = header->header_bytes; offset < *bytes;) {
    const auto entry = image.read<EntryHeader>(offset);
    const std::uint64_t rest = *bytes - offset;
    if (!entry || entries.size() == most_entries || entry->header_bytes < sizeof(EntryHeader) ||
        entry->header_bytes > rest || entry->bytes > rest - entry->header_bytes) {
      why = "its fatbin is damaged or cut off";
      return std::nullopt;
    }
    entries.push_back(entry_of(*entry, offset));
    if (entries.back().stored > entry->bytes) {
      why = "its fatbin is damaged or cut off";
      return std::nullopt;
    }
    offset += entry->header_bytes + entry->bytes;
  }
  return entries;
}

std::optional<std::string> content_of(const ByteSource& image, const FatBinaryEntry& entry,
                                      std::string& why) {
  auto stored = image.read_bytes(entry.offset, entry.stored);
  if (!stored) {
    why = "its fatbin is damaged or cut off";
    return std::nullopt;
  }
  if (entry.compression == FatBinaryEntry::Compression::None) return stored;
  if (entry.bytes > most_image_bytes || !may_be(entry, *stored)) {
    why = "its fatbin is damaged: an entry has another size than it says";
    return std::nullopt;
  }
  std::string content(static_cast<std::size_t>(entry.bytes), '\0');
  if (!uncompress(*stored, entry.compression, content)) {
    why = "its fatbin cannot be uncompressed";
    return std::nullopt;
  }
  return content;
}

bool append_stored(const ByteSource& image, const FatBinaryEntry& entry, std::string& entries) {
  const auto bytes = image.read_bytes(entry.begin, entry.end - entry.begin);
  if (bytes) entries += *bytes;
  return bytes.has_value();
}

bool append_uncompressed(const ByteSource& image, const FatBinaryEntry& entry,
                         std::string_view content, std::string& entries) {
  const auto bytes = image.read_bytes(entry.begin, entry.offset - entry.begin);
  if (!bytes) return false;
  constexpr std::size_t alignment = 8;
  const std::size_t stored = (content.size() + alignment - 1) / alignment * alignment;
  EntryHeader header;
  std::memcpy(&header, bytes->data(), sizeof header);
  header.bytes = stored;
  header.compressed_bytes = 0;
  header.uncompressed_bytes = 0;
  header.flags &= ~(flag_lz4 | flag_zstd);
  const std::size_t begin = entries.size();
  entries += *bytes;
  std::memcpy(entries.data() + begin, &header, sizeof header);
  entries += content;
  entries.append(stored - content.size(), '\0');
  return true;
}

std::string fat_binary_of(std::string_view entries) {
  const Header header{fat_binary_magic, 1, sizeof(Header), entries.size()};
  std::string bytes(sizeof header, '\0');
  std::memcpy(bytes.data(), &header, sizeof header);
  bytes += entries;
  return bytes;
}

}  // namespace contextune::gpu
