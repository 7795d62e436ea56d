#include "gpu/loaded_image.hpp"

#include <link.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/stable_hash.hpp"
#include "gpu/byte_source.hpp"
#include "gpu/fat_binary.hpp"

namespace contextune::gpu {
namespace {

/// What the CUDA runtime's compiler makes around a fatbin.
struct FatBinaryWrapper {
  std::uint32_t magic;
  std::uint32_t version;  // 2: further fatbins may be linked to it at load
  const void* fat_binary;
  const void* others;
};
constexpr std::uint32_t wrapper_magic = 0x466243b1;

constexpr std::size_t most_copied_bytes = 16 << 20;
constexpr std::size_t most_copied_bytes_together = 256 << 20;
constexpr std::size_t mark_bytes = 256;
constexpr const char* linked_at_load = "the driver linked it at its load, from several fatbins";
std::atomic<std::size_t> copied_bytes{0};

struct Place {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  std::string file;
  std::string build;  ///< of the file: what its linker named it by its contents, or its version
  bool found = false;
};

std::string hexadecimal(std::uint64_t number) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(number));
  return text.data();
}

/// Of a file that is loaded, so that its notes are there to be read.
std::string build_of(const dl_phdr_info& info) {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info.dlpi_phdr[i];
    if (part.p_type != PT_NOTE) continue;
    const auto* const notes = reinterpret_cast<const char*>(info.dlpi_addr + part.p_vaddr);
    for (std::size_t at = 0; at + sizeof(ElfW(Nhdr)) <= part.p_memsz;) {
      ElfW(Nhdr) note;
      std::memcpy(&note, notes + at, sizeof note);
      const std::size_t name = at + sizeof note;
      const std::size_t content = name + (note.n_namesz + 3U) / 4U * 4U;
      at = content + (note.n_descsz + 3U) / 4U * 4U;
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
    place.found = true;
    try {
      // The address tells two loads of one file apart.
      place.build = build_of(*info);
      place.file = std::string(info->dlpi_name == nullptr ? "" : info->dlpi_name) + "@" +
                   std::to_string(info->dlpi_addr);
    } catch (const std::exception&) {
      place.found = false;
    }
    return 1;
  }
  return 0;
}

/// The loaded program file whose read-only part has these bytes; without a name if none has.
Place place_of(const void* address, std::uint64_t bytes) {
  Place place;
  place.begin = reinterpret_cast<std::uintptr_t>(address);
  if (bytes > UINTPTR_MAX - place.begin) return {};
  place.end = place.begin + bytes;
  (void)dl_iterate_phdr(&look_into, &place);
  if (!place.found) return {};
  return place;
}

std::string program_file_of(const void* address, std::uint64_t bytes) {
  return place_of(address, bytes).file;
}

std::string first_bytes(const ByteSource& source) {
  std::string bytes(mark_bytes, '\0');
  bytes.resize(source.read_some(0, bytes.data(), bytes.size()));
  return bytes;
}

bool has_machine_code(const ByteSource& fat_binary, int binary_version) {
  std::string ignored;
  const auto entries = read_fat_binary(fat_binary, ignored);
  return entries && std::any_of(entries->begin(), entries->end(), [&](const FatBinaryEntry& one) {
           return one.kind == FatBinaryEntry::Kind::Cubin && one.architecture == binary_version;
         });
}

}  // namespace

std::shared_ptr<LoadedImage> LoadedImage::from_memory(const void* code) {
  const std::shared_ptr<LoadedImage> image(new LoadedImage);
  const MemorySource source(code);
  const auto wrapper = source.read<FatBinaryWrapper>(0);
  if (wrapper && wrapper->magic == wrapper_magic) {
    image->links_at_load_ = wrapper->version != 1 && wrapper->others != nullptr;
    image->keep_fat_binary(wrapper->fat_binary);
  } else if (form_of_image(source) == ImageForm::FatBinary) {
    image->keep_fat_binary(code);
  } else {
    image->keep_answer(source);
  }
  return image;
}

std::shared_ptr<LoadedImage> LoadedImage::from_file(const std::string& path, bool simulated) {
  const std::shared_ptr<LoadedImage> image(new LoadedImage);
  std::error_code ignored;
  std::string place = std::filesystem::absolute(path, ignored).string();
  if (simulated && std::filesystem::exists(place + ".sim", ignored)) place += ".sim";
  const FileSource source(place);
  if (form_of_image(source) == ImageForm::FatBinary) {
    image->path_ = place;
    image->mark_ = source.version();
    image->stamp_ = "file " + image->mark_;
    image->bytes_ = fat_binary_bytes(source).value_or(0);
  } else {
    image->keep_answer(source);
  }
  return image;
}

LoadedImage::~LoadedImage() {
  copied_bytes.fetch_sub(copy_.size(), std::memory_order_relaxed);
}

void LoadedImage::keep_answer(const ByteSource& source) {
  lasting_ = true;
  if (auto read = read_kernel_image(source, 0, answer_.why)) {
    answer_.image = std::make_shared<const KernelImage>(std::move(*read));
  }
}

void LoadedImage::keep_fat_binary(const void* address) {
  const MemorySource source(address);
  const auto bytes = fat_binary_bytes(source);
  if (!bytes) {
    lasting_ = true;
    answer_.why = "its fatbin has no header that is known";
    return;
  }
  bytes_ = *bytes;
  const Place place = place_of(address, *bytes);
  program_file_ = place.file;
  if (!program_file_.empty()) {
    address_ = address;
    stamp_ = place.build;
    mark_ = first_bytes(source);
    return;
  }
  if (*bytes <= most_copied_bytes &&
      copied_bytes.load(std::memory_order_relaxed) + *bytes <= most_copied_bytes_together) {
    if (auto copy = source.read_bytes(0, *bytes)) {
      copy_ = std::move(*copy);
      StableHash hash;
      hash.add(copy_);
      stamp_ = "bytes " + hexadecimal(hash.value());
      copied_bytes.fetch_add(copy_.size(), std::memory_order_relaxed);
      return;
    }
  }
  lasting_ = true;
  answer_.why =
      "its fatbin was loaded from memory that the program may free, and is too large to "
      "be copied";
}

LoadedImage::Answer LoadedImage::read_now(int binary_version) const {
  Answer answer;
  std::optional<KernelImage> read;
  if (!path_.empty()) {
    const FileSource source(path_);
    if (source.version() != mark_) {
      answer.why = "its file was changed or removed after the load: " + path_;
      return answer;
    }
    read = read_kernel_image(source, binary_version, answer.why);
  } else if (address_ != nullptr) {
    const MemorySource source(address_);
    const auto bytes = fat_binary_bytes(source);
    if (!bytes || program_file_of(address_, *bytes) != program_file_ ||
        first_bytes(source) != mark_) {
      answer.why = "the program file that it came from is no longer loaded";
      return answer;
    }
    if (links_at_load_ && !has_machine_code(source, binary_version)) {
      answer.why = linked_at_load;
      return answer;
    }
    read = read_kernel_image(source, binary_version, answer.why);
  } else {
    const BufferSource source(copy_);
    if (links_at_load_ && !has_machine_code(source, binary_version)) {
      answer.why = linked_at_load;
      return answer;
    }
    read = read_kernel_image(source, binary_version, answer.why);
  }
  if (read) answer.image = std::make_shared<const KernelImage>(std::move(*read));
  return answer;
}

std::string LoadedImage::code_of(const std::string& symbol, int binary_version) {
  std::string why;
  const auto image = read(binary_version, why);
  if (image == nullptr) return {};
  const auto found = image->code.find(symbol);
  return found == image->code.end() ? std::string() : hexadecimal(found->second);
}

std::shared_ptr<const KernelImage> LoadedImage::read(int binary_version, std::string& why) {
  const std::lock_guard lock(mutex_);
  if (lasting_) {
    why = answer_.why;
    return answer_.image;
  }
  auto known = answers_.find(binary_version);
  if (known == answers_.end()) {
    known = answers_.emplace(binary_version, read_now(binary_version)).first;
  }
  why = known->second.why;
  return known->second.image;
}

}  // namespace contextune::gpu
