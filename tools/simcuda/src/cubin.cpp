// Machine code as far as it decides about the order of launches. It is decoded after NVIDIA's
// encoding alone and shares nothing with those who write such code: it is what they are held to.
#include "cubin.hpp"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "failure.hpp"

namespace simcuda {

namespace {

constexpr Elf64_Half machine_of_cubins = 190;
constexpr std::uint64_t most_cubin_bytes = std::uint64_t{512} << 20;
constexpr std::uint32_t wrapper_magic = 0x466243b1;
constexpr std::uint32_t fat_magic = 0xba55ed50;

template <class T>
T read_at(std::string_view image, std::uint64_t offset) {
  require(offset <= image.size() && image.size() - offset >= sizeof(T), CUDA_ERROR_INVALID_IMAGE);
  T value;
  std::memcpy(&value, image.data() + offset, sizeof value);
  return value;
}

template <class T>
T read_at(const void* address, std::size_t offset) {
  T value;
  std::memcpy(&value, static_cast<const char*>(address) + offset, sizeof value);
  return value;
}

struct Opcode {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  // The lowest 12 bits are the operation, the next four its predicate; 7 is "always".
  [[nodiscard]] std::uint64_t operation() const { return low & 0xfff; }
  [[nodiscard]] bool always() const { return (low >> 12 & 0xf) == 7; }
  [[nodiscard]] bool is_branch() const { return operation() == 0x947; }
  [[nodiscard]] bool is_wait() const { return operation() == 0x82e && always(); }
  [[nodiscard]] bool is_trigger() const { return operation() == 0x82d; }
  [[nodiscard]] bool is_nop() const { return operation() == 0x918; }
  [[nodiscard]] bool loads_stack_pointer() const {
    return low == 0x00000a00ff017b82 || low == 0x0000df00ff017b82;  // since sm_100
  }
  // IADD3 or VIADD of R1 by a constant, or local memory at an address from R1 on.
  [[nodiscard]] bool uses_stack_pointer() const {
    const std::uint64_t what = operation();
    const bool adds = what == 0x810 || what == 0x836;
    const bool is_local = what == 0x387 || what == 0x987 || what == 0x983;
    return (adds || is_local) && (low >> 24 & 0xff) == 1;
  }
  // Words of four bytes from the end of the instruction, in three pieces of 8, 30 and 18 bits.
  [[nodiscard]] std::int64_t branch_bytes() const {
    const std::uint64_t words = (low >> 16 & 0xff) | (low >> 34) << 8 | (high & 0x3ffff) << 38;
    return static_cast<std::int64_t>(words << 8) / 256 * 4;
  }
};

class KernelCodeReader {
 public:
  explicit KernelCodeReader(std::string_view code) {
    require(!code.empty() && code.size() % sizeof(Opcode) == 0, CUDA_ERROR_INVALID_IMAGE);
    code_.resize(code.size() / sizeof(Opcode));
    std::memcpy(code_.data(), code.data(), code.size());
  }

  [[nodiscard]] CubinKernel read() const {
    const Opcode& first = code_.front();
    require(first.loads_stack_pointer() || first.is_wait() || first.is_trigger() ||
                (first.is_branch() && first.always()),
            CUDA_ERROR_INVALID_IMAGE);
    CubinKernel kernel;
    bool uses_stack = false;
    for (std::size_t i = 0; i < code_.size(); ++i) {
      if (code_[i].is_branch()) (void)target(i);
      kernel.triggers = kernel.triggers || code_[i].is_trigger();
      uses_stack = uses_stack || code_[i].uses_stack_pointer();
    }
    const Entry entry = follow_entry();
    // Whoever leads the entry elsewhere has to come back, and whoever puts something else there
    // must not leave out what is needed.
    require(entry.passed_second && (entry.loaded_stack || !uses_stack), CUDA_ERROR_INVALID_IMAGE);
    kernel.waits = entry.waited;
    kernel.detours = first.is_branch();
    return kernel;
  }

 private:
  struct Entry {
    bool waited = false;
    bool loaded_stack = false;
    bool passed_second = false;
  };

  [[nodiscard]] std::size_t target(std::size_t index) const {
    constexpr auto step = static_cast<std::int64_t>(sizeof(Opcode));
    const auto size = static_cast<std::int64_t>(code_.size()) * step;
    const std::int64_t bytes = code_[index].branch_bytes();
    require(bytes >= -size && bytes < size && bytes % step == 0, CUDA_ERROR_INVALID_IMAGE);
    const std::int64_t to = static_cast<std::int64_t>(index) + 1 + bytes / step;
    require(to >= 0 && to < static_cast<std::int64_t>(code_.size()), CUDA_ERROR_INVALID_IMAGE);
    return static_cast<std::size_t>(to);
  }

  // From the first instruction to the first one that may do some of the kernel's work.
  [[nodiscard]] Entry follow_entry() const {
    Entry entry;
    std::size_t at = 0;
    for (std::size_t steps = 0; steps < 2 * code_.size(); ++steps) {
      require(at < code_.size(), CUDA_ERROR_INVALID_IMAGE);
      const Opcode& now = code_[at];
      entry.passed_second = entry.passed_second || at == 1;
      if (now.is_branch() && now.always()) {
        at = target(at);
        continue;
      }
      if (now.is_wait())
        entry.waited = true;
      else if (now.loads_stack_pointer())
        entry.loaded_stack = true;
      else if (!now.is_nop() && !now.is_trigger())
        break;
      ++at;
    }
    return entry;
  }

  std::vector<Opcode> code_;
};

std::string_view content_of(std::string_view image, const Elf64_Shdr& section) {
  require(section.sh_offset <= image.size() && section.sh_size <= image.size() - section.sh_offset,
          CUDA_ERROR_INVALID_IMAGE);
  return image.substr(section.sh_offset, section.sh_size);
}

// The header, read so far only as it is one of a cubin: an address says nothing about a size.
Elf64_Ehdr cubin_header(const void* image) {
  const auto* const ident = static_cast<const unsigned char*>(image);
  require(std::memcmp(ident, ELFMAG, SELFMAG) == 0 && ident[EI_CLASS] == ELFCLASS64 &&
              ident[EI_DATA] == ELFDATA2LSB,
          CUDA_ERROR_NO_BINARY_FOR_GPU);
  const auto header = read_at<Elf64_Ehdr>(image, 0);
  require(header.e_machine == machine_of_cubins, CUDA_ERROR_NO_BINARY_FOR_GPU);
  require(header.e_shentsize == sizeof(Elf64_Shdr) && header.e_shnum > 0 &&
              header.e_shstrndx < header.e_shnum && header.e_shoff < most_cubin_bytes,
          CUDA_ERROR_INVALID_IMAGE);
  return header;
}

}  // namespace

bool is_cubin(std::string_view image) {
  return image.substr(0, SELFMAG) == ELFMAG;
}

bool is_fat_binary(const void* image) {
  // Texts shorter than that end in a zero before the fourth byte.
  if (std::memchr(image, 0, sizeof fat_magic) != nullptr) return false;
  const auto magic = read_at<std::uint32_t>(image, 0);
  return magic == fat_magic || magic == wrapper_magic;
}

std::string_view cubin_bytes(const void* image) {
  const Elf64_Ehdr header = cubin_header(image);
  std::uint64_t end = header.e_shoff + std::uint64_t{header.e_shnum} * sizeof(Elf64_Shdr);
  for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
    const auto section = read_at<Elf64_Shdr>(image, header.e_shoff + i * sizeof(Elf64_Shdr));
    // The compiler's own kinds may have a size without content.
    if (section.sh_type == SHT_NOBITS || section.sh_type > SHT_LOPROC) continue;
    require(section.sh_offset < most_cubin_bytes && section.sh_size < most_cubin_bytes,
            CUDA_ERROR_INVALID_IMAGE);
    end = std::max(end, section.sh_offset + section.sh_size);
  }
  return {static_cast<const char*>(image), static_cast<std::size_t>(end)};
}

const void* cubin_in(const void* fat_binary) {
  const void* const fat = read_at<std::uint32_t>(fat_binary, 0) == wrapper_magic
                              ? read_at<const void*>(fat_binary, 8)
                              : fat_binary;
  require(fat != nullptr && read_at<std::uint32_t>(fat, 0) == fat_magic, CUDA_ERROR_INVALID_IMAGE);
  constexpr std::uint16_t machine_code = 2;
  constexpr std::uint64_t compressed = 0x2000 | 0x8000;
  const auto header_bytes = read_at<std::uint16_t>(fat, 6);
  const auto bytes = read_at<std::uint64_t>(fat, 8);
  constexpr std::uint64_t entry_header = 64;
  for (std::uint64_t at = 0; at + entry_header <= bytes;) {
    const std::uint64_t place = header_bytes + at;
    const auto content = read_at<std::uint32_t>(fat, place + 4);
    const auto stored = read_at<std::uint64_t>(fat, place + 8);
    require(content >= entry_header && stored <= bytes - at, CUDA_ERROR_INVALID_IMAGE);
    const auto flags = read_at<std::uint64_t>(fat, place + 40);
    if (read_at<std::uint16_t>(fat, place) == machine_code && (flags & compressed) == 0)
      return static_cast<const char*>(fat) + place + content;
    at += content + stored;
  }
  throw Failure{CUDA_ERROR_NO_BINARY_FOR_GPU};
}

Cubin read_cubin(std::string_view image) {
  require(image.size() >= sizeof(Elf64_Ehdr), CUDA_ERROR_INVALID_IMAGE);
  const Elf64_Ehdr header = cubin_header(image.data());
  const auto section_at = [&](std::uint64_t index) {
    return read_at<Elf64_Shdr>(image, header.e_shoff + index * sizeof(Elf64_Shdr));
  };
  const std::string_view names = content_of(image, section_at(header.e_shstrndx));
  Cubin cubin;
  for (std::uint64_t i = 1; i < header.e_shnum; ++i) {
    const Elf64_Shdr section = section_at(i);
    if (section.sh_type == SHT_NOBITS) continue;
    require(section.sh_name < names.size(), CUDA_ERROR_INVALID_IMAGE);
    std::string_view name = names.substr(section.sh_name);
    name = name.substr(0, name.find('\0'));
    constexpr std::string_view text = ".text.";
    if (name == ".simcuda") cubin.text = content_of(image, section);
    if (name.substr(0, text.size()) != text) continue;
    CubinKernel kernel = KernelCodeReader(content_of(image, section)).read();
    kernel.name = name.substr(text.size());
    cubin.kernels.push_back(kernel);
  }
  return cubin;
}

}  // namespace simcuda
