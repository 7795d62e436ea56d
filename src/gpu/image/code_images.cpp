#include "gpu/image/code_images.hpp"

#include <elf.h>

#include <algorithm>
#include <cstring>

#include "gpu/image/entry_wait.hpp"
#include "gpu/image/fat_binary.hpp"
#include "gpu/image/kernel_image.hpp"

namespace contextune::gpu {
namespace {

/// A piece of another source.
class PartSource final : public ByteSource {
 public:
  PartSource(const ByteSource& whole, std::uint64_t begin, std::uint64_t bytes) noexcept
      : whole_(whole), begin_(begin), bytes_(bytes) {}
  [[nodiscard]] std::size_t read_some(std::uint64_t offset, void* to,
                                      std::size_t bytes) const noexcept override {
    if (offset >= bytes_) return 0;
    return whole_.read_some(
        begin_ + offset, to,
        static_cast<std::size_t>(std::min<std::uint64_t>(bytes, bytes_ - offset)));
  }

 private:
  const ByteSource& whole_;
  std::uint64_t begin_;
  std::uint64_t bytes_;
};

class Finder {
 public:
  Finder(const ByteSource& file, const std::function<void(std::string_view)>& see)
      : file_(file), see_(see) {}

  std::optional<CodeImages> find() {
    switch (form_of_image(file_)) {
      case ImageForm::FatBinary:
        see_fat_binary(file_);
        return std::move(found_);
      case ImageForm::Cubin:
        return see_elf() ? std::optional(std::move(found_)) : std::nullopt;
      case ImageForm::Text:
      case ImageForm::Unknown:
        break;
    }
    return std::nullopt;
  }

 private:
  void see_machine_code(std::string_view image) {
    ++found_.machine_code;
    see_(image);
  }

  void see_fat_binary(const ByteSource& source) {
    std::string why;
    const auto entries = read_fat_binary(source, why);
    if (!entries) return found_.damage.push_back(why);
    for (const FatBinaryEntry& one : *entries) {
      if (one.kind == FatBinaryEntry::Kind::Ptx) ++found_.ptx;
      if (one.kind == FatBinaryEntry::Kind::Other) ++found_.other;
      if (one.kind != FatBinaryEntry::Kind::Cubin) continue;
      if (const auto content = content_of(source, one, why)) {
        see_machine_code(*content);
      } else {
        found_.damage.push_back(why);
      }
    }
  }

  /// A GPU's code itself, or a file of the host with fatbins in sections of their own.
  bool see_elf() {
    constexpr Elf64_Half machine_of_gpus = 190;
    const auto header = file_.read<Elf64_Ehdr>(0);
    if (!header || header->e_ident[EI_CLASS] != ELFCLASS64) return false;
    if (header->e_machine == machine_of_gpus) {
      const auto whole = read_whole();
      if (whole) see_machine_code(*whole);
      if (!whole) found_.damage.emplace_back("its machine code cannot be read: it is too large");
      return true;
    }
    if (header->e_shentsize != sizeof(Elf64_Shdr) || header->e_shstrndx >= header->e_shnum) {
      return true;
    }
    const auto section = [&](std::uint64_t i) {
      return file_.read<Elf64_Shdr>(header->e_shoff + i * sizeof(Elf64_Shdr));
    };
    const auto names = section(header->e_shstrndx);
    for (std::uint64_t i = 0; names && i < header->e_shnum; ++i) {
      const auto one = section(i);
      if (!one || one->sh_type == SHT_NOBITS) continue;
      char name[16] = {};
      (void)file_.read_some(names->sh_offset + one->sh_name, name, sizeof name - 1);
      if (std::strcmp(name, ".nv_fatbin") == 0 || std::strcmp(name, "__nv_relfatbin") == 0) {
        see_section(one->sh_offset, one->sh_size);
      }
    }
    return true;
  }

  [[nodiscard]] std::optional<std::string> read_whole() const {
    std::string whole;
    while (whole.size() <= most_code_bytes) {
      const std::size_t have = whole.size();
      const std::size_t step = std::max(have, std::size_t{1} << 16);
      whole.resize(have + step);
      const std::size_t got = file_.read_some(have, whole.data() + have, step);
      whole.resize(have + got);
      if (got < step) return whole;
    }
    return std::nullopt;
  }

  /// Fatbins one behind the other, with gaps up to the next multiple of eight bytes.
  void see_section(std::uint64_t begin, std::uint64_t bytes) {
    constexpr std::uint64_t alignment = 8;
    std::uint64_t offset = 0;
    while (offset < bytes) {
      const PartSource rest(file_, begin + offset, bytes - offset);
      const auto size = fat_binary_bytes(rest);
      if (!size) {
        const auto next = next_magic(rest, alignment);
        if (!next) return;
        offset += *next;
        continue;
      }
      see_fat_binary(rest);
      offset += (*size + alignment - 1) / alignment * alignment;
    }
  }

  /// From `from` on, at a multiple of eight bytes.
  static std::optional<std::uint64_t> next_magic(const ByteSource& source, std::uint64_t from) {
    std::vector<std::uint64_t> words(1024);
    while (true) {
      const std::size_t got =
          source.read_some(from, words.data(), words.size() * sizeof(std::uint64_t));
      const std::size_t count = got / sizeof(std::uint64_t);
      for (std::size_t i = 0; i < count; ++i) {
        if ((words[i] & 0xffffffff) == fat_binary_magic) return from + i * sizeof(std::uint64_t);
      }
      if (count < words.size()) return std::nullopt;
      from += got;
    }
  }

  const ByteSource& file_;
  const std::function<void(std::string_view)>& see_;
  CodeImages found_;
};

}  // namespace

std::optional<CodeImages> for_each_machine_code(
    const ByteSource& file, const std::function<void(std::string_view image)>& see) {
  return Finder(file, see).find();
}

}  // namespace contextune::gpu
