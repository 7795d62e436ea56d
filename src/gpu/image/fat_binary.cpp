#include "gpu/image/fat_binary.hpp"

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

constexpr const char* cut_off = "its fatbin is damaged or cut off";

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

/// Whether exactly `content.size()` bytes come out.
bool comes_out(const std::string& stored, FatBinaryEntry::Compression compression,
               std::span<char> content) {
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

bool uncompress(const std::string& stored, FatBinaryEntry::Compression compression,
                std::span<char> content, std::string& why) {
  if (comes_out(stored, compression, content)) return true;
  why = "its fatbin cannot be uncompressed";
  return false;
}

/// An entry's content as it is stored, of which so much can come out as the entry says.
std::optional<std::string> stored_of(const ByteSource& image, const FatBinaryEntry& entry,
                                     std::string& why) {
  auto stored = image.read_bytes(entry.offset, entry.stored);
  if (!stored) {
    why = cut_off;
  } else if (entry.compression != FatBinaryEntry::Compression::None &&
             (entry.bytes > most_image_bytes || !may_be(entry, *stored))) {
    why = "its fatbin is damaged: an entry has another size than it says";
    stored.reset();
  }
  return stored;
}

/// Where the next entry may begin.
std::uint64_t in_whole_words(std::uint64_t bytes) {
  constexpr std::uint64_t word = 8;
  return (bytes + word - 1) / word * word;
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
      why = cut_off;
      return std::nullopt;
    }
    entries.push_back(entry_of(*entry, offset));
    if (entries.back().stored > entry->bytes) {
      why = cut_off;
      return std::nullopt;
    }
    offset += entry->header_bytes + entry->bytes;
  }
  return entries;
}

std::optional<std::string> content_of(const ByteSource& image, const FatBinaryEntry& entry,
                                      std::string& why) {
  auto stored = stored_of(image, entry, why);
  if (!stored || entry.compression == FatBinaryEntry::Compression::None) return stored;
  std::string content(static_cast<std::size_t>(entry.bytes), '\0');
  if (!uncompress(*stored, entry.compression, content, why)) return std::nullopt;
  return content;
}

bool read_content(const ByteSource& image, const FatBinaryEntry& entry, std::span<char> to,
                  std::string& why) {
  if (entry.compression == FatBinaryEntry::Compression::None) {
    if (image.read(entry.offset, to.data(), to.size())) return true;
    why = cut_off;
    return false;
  }
  const auto stored = stored_of(image, entry, why);
  return stored && uncompress(*stored, entry.compression, to, why);
}

std::uint64_t FatBinaryWriter::bytes_as_stored(const FatBinaryEntry& entry) noexcept {
  return entry.end - entry.begin;
}

std::uint64_t FatBinaryWriter::bytes_uncompressed(const FatBinaryEntry& entry) noexcept {
  return entry.offset - entry.begin + in_whole_words(entry.bytes);
}

std::uint64_t FatBinaryWriter::header_bytes() noexcept {
  return sizeof(Header);
}

void FatBinaryWriter::put_header(char* to, std::uint64_t entries) noexcept {
  const Header header{fat_binary_magic, 1, sizeof(Header), entries};
  std::memcpy(to, &header, sizeof header);
}

bool FatBinaryWriter::put_as_stored(char* to, const FatBinaryEntry& entry) const noexcept {
  return image_.read(entry.begin, to, static_cast<std::size_t>(bytes_as_stored(entry)));
}

char* FatBinaryWriter::put_uncompressed(char* to, const FatBinaryEntry& entry) const noexcept {
  const auto header_bytes = static_cast<std::size_t>(entry.offset - entry.begin);
  if (!image_.read(entry.begin, to, header_bytes)) return nullptr;
  EntryHeader header;
  std::memcpy(&header, to, sizeof header);
  header.bytes = in_whole_words(entry.bytes);
  header.compressed_bytes = 0;
  header.uncompressed_bytes = 0;
  header.flags &= ~(flag_lz4 | flag_zstd);
  std::memcpy(to, &header, sizeof header);
  return to + header_bytes;
}

}  // namespace contextune::gpu
