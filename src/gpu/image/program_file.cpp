#include "gpu/image/program_file.hpp"

#include <link.h>
#include <sys/auxv.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <span>

#include "core/value/hexadecimal.hpp"
#include "core/value/stable_hash.hpp"
#include "gpu/driver/byte_source.hpp"
#include "gpu/image/fat_binary.hpp"

namespace contextune::gpu {
namespace {

struct Place {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  std::optional<ProgramFile> file;
};

/// The build or version of a file that is loaded, so that its notes are there to be read.
std::string build_of(const dl_phdr_info& info) {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info.dlpi_phdr[i];
    if (part.p_type != PT_NOTE) continue;
    const auto* const notes = reinterpret_cast<const char*>(info.dlpi_addr + part.p_vaddr);
    for (std::size_t at = 0; at + sizeof(ElfW(Nhdr)) <= part.p_memsz;) {
      ElfW(Nhdr) note;
      std::memcpy(&note, notes + at, sizeof note);
      const std::size_t name = at + sizeof note;
      const std::size_t content = name + (std::size_t{note.n_namesz} + 3U) / 4U * 4U;
      at = content + (std::size_t{note.n_descsz} + 3U) / 4U * 4U;
      if (at > part.p_memsz) break;
      if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4 ||
          std::memcmp(notes + name, "GNU", 4) != 0) {
        continue;
      }
      StableHash hash;
      hash.add(std::string_view(notes + content, note.n_descsz));
      return "build " + hexadecimal(hash.value());
    }
  }
  const bool is_program = info.dlpi_name == nullptr || *info.dlpi_name == '\0';
  const std::string version = FileSource(is_program ? "/proc/self/exe" : info.dlpi_name).version();
  return version.empty() ? std::string() : "file " + version;
}

int look_into(dl_phdr_info* info, std::size_t, void* data) {
  auto& place = *static_cast<Place*>(data);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || (part.p_flags & PF_W) != 0) continue;
    const std::uintptr_t begin = info->dlpi_addr + part.p_vaddr;
    if (place.begin < begin || place.end > begin + part.p_filesz) continue;
    try {
      place.file = {std::string(info->dlpi_name == nullptr ? "" : info->dlpi_name) + "@" +
                        std::to_string(info->dlpi_addr),
                    build_of(*info)};
    } catch (const std::exception&) {
      // As if none had it: nothing may be thrown through the loader.
    }
    return 1;
  }
  return 0;
}

/// Whether the bytes are in a part of the executable's file as it was loaded.
/// @param without flags of parts that do not count
bool has_in_executable(const void* address, std::uintptr_t bytes, std::uint32_t without) {
  const auto parts = reinterpret_cast<std::uintptr_t>(getauxval(AT_PHDR));
  const auto place = reinterpret_cast<std::uintptr_t>(address);
  if (parts == 0 || getauxval(AT_PHENT) != sizeof(ElfW(Phdr))) return false;
  const std::span<const ElfW(Phdr)> headers(reinterpret_cast<const ElfW(Phdr)*>(parts),
                                            getauxval(AT_PHNUM));
  const auto own = std::find_if(headers.begin(), headers.end(),
                                [](const auto& part) { return part.p_type == PT_PHDR; });
  if (own == headers.end()) return false;  // linked to one place, or started by its loader
  const std::uintptr_t base = parts - own->p_vaddr;
  return std::any_of(headers.begin(), headers.end(), [&](const auto& part) {
    const std::uintptr_t begin = base + part.p_vaddr;
    return part.p_type == PT_LOAD && (part.p_flags & PF_R) != 0 && (part.p_flags & without) == 0 &&
           place >= begin && part.p_filesz >= bytes && place - begin <= part.p_filesz - bytes;
  });
}

}  // namespace

std::optional<ProgramFile> program_file_of(const void* address, std::uint64_t bytes) {
  Place place;
  place.begin = reinterpret_cast<std::uintptr_t>(address);
  if (bytes > UINTPTR_MAX - place.begin) return std::nullopt;
  place.end = place.begin + bytes;
  (void)dl_iterate_phdr(&look_into, &place);
  return place.file;
}

const void* fat_binary_of_program(const void* code) noexcept {
  FatBinaryWrapper wrapper;
  if (!has_in_executable(code, sizeof wrapper, 0)) return nullptr;
  // Byte by byte: source may end sooner, and a sanitizer of the program's would see a step beyond.
  const auto* const bytes = static_cast<const unsigned char*>(code);
  for (unsigned i = 0; i < sizeof wrapper.magic; ++i)
    if (bytes[i] != static_cast<unsigned char>(FatBinaryWrapper::right_magic >> 8 * i))
      return nullptr;
  std::memcpy(&wrapper, code, sizeof wrapper);
  constexpr std::size_t header_bytes = 16;
  const bool stays =
      !wrapper.is_linked_at_load() && has_in_executable(wrapper.fat_binary, header_bytes, PF_W);
  return stays ? wrapper.fat_binary : nullptr;
}

}  // namespace contextune::gpu
