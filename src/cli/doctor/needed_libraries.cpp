#include "cli/doctor/needed_libraries.hpp"

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <optional>

#include "gpu/driver/byte_source.hpp"

namespace contextune::cli {
namespace {

constexpr std::size_t most_parts = 256;
constexpr std::size_t most_entries = 4096;

/// Reads a file and believes none of it.
class ElfFile {
 public:
  explicit ElfFile(const std::string& path) : file_(path) {
    const auto header = file_.read<Elf64_Ehdr>(0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != ELFCLASS64) {
      return;
    }
    for (std::size_t i = 0; i < header->e_phnum && i < most_parts; ++i) {
      const auto part = file_.read<Elf64_Phdr>(header->e_phoff + i * sizeof(Elf64_Phdr));
      if (!part) break;
      parts_.push_back(*part);
    }
  }

  [[nodiscard]] std::vector<std::string> needed() const {
    std::vector<std::uint64_t> names;
    std::uint64_t texts = 0;
    for (const Elf64_Dyn& entry : dynamic_entries()) {
      if (entry.d_tag == DT_NEEDED) names.push_back(entry.d_un.d_val);
      if (entry.d_tag == DT_STRTAB) texts = entry.d_un.d_ptr;
    }
    std::vector<std::string> needed;
    const auto begin = place_of(texts);
    for (const std::uint64_t name : names) {
      if (auto text = begin ? text_at(*begin + name) : std::nullopt) needed.push_back(*text);
    }
    return needed;
  }

 private:
  [[nodiscard]] std::vector<Elf64_Dyn> dynamic_entries() const {
    std::vector<Elf64_Dyn> entries;
    for (const Elf64_Phdr& part : parts_) {
      if (part.p_type != PT_DYNAMIC) continue;
      for (std::size_t i = 0; i < most_entries; ++i) {
        const auto entry = file_.read<Elf64_Dyn>(part.p_offset + i * sizeof(Elf64_Dyn));
        if (!entry || entry->d_tag == DT_NULL) break;
        entries.push_back(*entry);
      }
    }
    return entries;
  }

  /// Where in the file that address is.
  [[nodiscard]] std::optional<std::uint64_t> place_of(std::uint64_t address) const {
    for (const Elf64_Phdr& part : parts_) {
      if (part.p_type != PT_LOAD || address < part.p_vaddr ||
          address - part.p_vaddr >= part.p_filesz) {
        continue;
      }
      return part.p_offset + (address - part.p_vaddr);
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<std::string> text_at(std::uint64_t place) const {
    char text[256] = {};
    const std::size_t count = file_.read_some(place, text, sizeof text - 1);
    if (count == 0 || std::strlen(text) == sizeof text - 1) return std::nullopt;
    return std::string(text);
  }

  gpu::FileSource file_;
  std::vector<Elf64_Phdr> parts_;
};

}  // namespace

std::vector<std::string> needed_libraries(const std::string& path) {
  return ElfFile(path).needed();
}

}  // namespace contextune::cli
