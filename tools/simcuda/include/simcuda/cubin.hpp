#pragma once
// Machine code of simulated kernels: ELF images as a compiler for sm_90 lays them out, as far as a
// driver and those who change code look at them. The work itself is done by the registered kernel
// of the same name.

#include <elf.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace simcuda {

/// One instruction of sm_90.
struct Instruction {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
};

namespace instruction {
inline constexpr Instruction load_stack_pointer{0x00000a00ff017b82, 0x000fe20000000800};
inline constexpr Instruction wait{0x000000000000782e, 0x000fe20000000000};         // ACQBULK
inline constexpr Instruction trigger{0x000000000000782d, 0x000fea0000000000};      // PREEXIT
inline constexpr Instruction copy_by_map{0x00000004080075b4, 0x0001d80008008000};  // UTMALDG.2D
inline constexpr Instruction drop_map{0x00000000040079b9, 0x0001e40008000000};     // UTMACCTL.IV
inline constexpr Instruction move_stack_pointer{0xfffffff001017810, 0x000fe20007ffe0ff};
inline constexpr Instruction work{0x0000000000027919, 0x000e220000002100};  // S2R R2, SR_TID.X
inline constexpr Instruction exit{0x000000000000794d, 0x000fea0003800000};
inline constexpr Instruction branch_to_itself{0xfffffffc00fc7947, 0x000fc0000383ffff};
inline constexpr Instruction nop{0x0000000000007918, 0x000fc00000000000};
}  // namespace instruction

/// A kernel as its author compiled it.
struct CompiledKernel {
  std::string name;
  bool waits = false;     // for the kernel before, at its entry
  bool triggers = false;  // lets the kernel behind it start, before it waits
  bool maps = false;      // copies through a tensor map
  bool fences_maps = false;
  bool uses_stack = false;  // its work moves the stack pointer
  unsigned registers = 32;  // as the image says; a launch has those of the registered kernel
  unsigned padding = 4;     // instructions without effect behind its code
};

namespace detail {

[[nodiscard]] inline std::vector<Instruction> code_of(const CompiledKernel& kernel) {
  std::vector<Instruction> code{instruction::load_stack_pointer};
  if (kernel.triggers) code.push_back(instruction::trigger);
  if (kernel.waits) code.push_back(instruction::wait);
  if (kernel.fences_maps) code.push_back(instruction::drop_map);
  if (kernel.maps) code.push_back(instruction::copy_by_map);
  if (kernel.uses_stack) code.push_back(instruction::move_stack_pointer);
  code.insert(code.end(), {instruction::work, instruction::exit, instruction::branch_to_itself});
  code.insert(code.end(), kernel.padding, instruction::nop);
  return code;
}

template <class T>
void append(std::string& to, const T& value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// Puts sections one behind the other, then the table of them.
class ElfBuilder {
 public:
  ElfBuilder() : bytes_(sizeof(Elf64_Ehdr), '\0') { sections_.emplace_back(); }

  /// The section's index.
  std::uint32_t add(std::string_view name, std::string_view content, Elf64_Shdr section) {
    bytes_.resize((bytes_.size() + 127) / 128 * 128);
    section.sh_name = static_cast<Elf64_Word>(names_.size());
    section.sh_offset = bytes_.size();
    section.sh_size = content.size();
    section.sh_addralign = 128;
    names_.append(name).push_back('\0');
    bytes_.append(content);
    sections_.push_back(section);
    return static_cast<std::uint32_t>(sections_.size() - 1);
  }

  [[nodiscard]] std::string finish() {
    Elf64_Shdr names{};
    names.sh_type = SHT_STRTAB;
    names_.append(".shstrtab").push_back('\0');
    const std::string content = names_;
    const std::uint32_t index = add("", content, names);
    sections_.back().sh_name = static_cast<Elf64_Word>(content.size() - sizeof ".shstrtab");
    bytes_.resize((bytes_.size() + 7) / 8 * 8);
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_ident[EI_OSABI] = 0x33;
    header.e_ident[EI_ABIVERSION] = 7;
    header.e_type = ET_EXEC;
    header.e_machine = 190;  // EM_CUDA
    header.e_version = EV_CURRENT;
    header.e_flags = 0x005a055a;  // sm_90
    header.e_ehsize = sizeof header;
    header.e_shoff = bytes_.size();
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<Elf64_Half>(sections_.size());
    header.e_shstrndx = static_cast<Elf64_Half>(index);
    std::memcpy(bytes_.data(), &header, sizeof header);
    for (const Elf64_Shdr& section : sections_) append(bytes_, section);
    return std::move(bytes_);
  }

 private:
  std::string bytes_;
  std::string names_ = std::string(1, '\0');
  std::vector<Elf64_Shdr> sections_;
};

}  // namespace detail

/// An image of these kernels.
/// @param text a module image in its text form (README.md): where the kernels are, if the process
/// does not register them itself, and the module's variables
[[nodiscard]] inline std::string build_cubin(const std::vector<CompiledKernel>& kernels,
                                             std::string_view text = {}) {
  detail::ElfBuilder elf;
  std::string names(1, '\0');
  std::string symbols;
  std::string facts;
  detail::append(symbols, Elf64_Sym{});
  for (const CompiledKernel& kernel : kernels) {
    const std::vector<Instruction> code = detail::code_of(kernel);
    Elf64_Shdr section{};
    section.sh_type = SHT_PROGBITS;
    section.sh_flags = SHF_ALLOC | SHF_EXECINSTR;
    const std::string_view bytes(reinterpret_cast<const char*>(code.data()),
                                 code.size() * sizeof(Instruction));
    Elf64_Sym symbol{};
    symbol.st_name = static_cast<Elf64_Word>(names.size());
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    symbol.st_other = 0x10;  // a kernel
    symbol.st_shndx = static_cast<Elf64_Section>(elf.add(".text." + kernel.name, bytes, section));
    symbol.st_size = bytes.size();
    names.append(kernel.name).push_back('\0');
    const std::array<std::uint8_t, 4> registers{4, 0x2f, 8, 0};  // of a symbol, in 8 bytes
    facts.append(registers.begin(), registers.end());
    detail::append(facts, static_cast<std::uint32_t>(symbols.size() / sizeof symbol));
    detail::append(facts, std::uint32_t{kernel.registers});
    detail::append(symbols, symbol);
  }
  Elf64_Shdr section{};
  section.sh_type = SHT_STRTAB;
  const std::uint32_t strings = elf.add(".strtab", names, section);
  section.sh_type = SHT_SYMTAB;
  section.sh_link = strings;
  section.sh_info = 1;
  section.sh_entsize = sizeof(Elf64_Sym);
  const std::uint32_t table = elf.add(".symtab", symbols, section);
  section = {};
  section.sh_type = SHT_LOPROC;
  section.sh_link = table;
  elf.add(".nv.info", facts, section);
  section = {};
  section.sh_type = SHT_NOTE;
  if (!text.empty()) elf.add(".simcuda", text, section);
  return elf.finish();
}

/// A fatbin with one image of sm_90, not compressed.
[[nodiscard]] inline std::string build_fat_binary(std::string_view cubin) {
  std::string bytes;
  const std::size_t padded = (cubin.size() + 7) / 8 * 8;
  detail::append(bytes, std::uint32_t{0xba55ed50});
  detail::append(bytes, std::uint16_t{1});
  detail::append(bytes, std::uint16_t{16});  // bytes of this header
  detail::append(bytes, std::uint64_t{64 + padded});
  detail::append(bytes, std::uint16_t{2});  // machine code
  detail::append(bytes, std::uint16_t{0x101});
  detail::append(bytes, std::uint32_t{64});  // bytes of this header
  detail::append(bytes, std::uint64_t{padded});
  bytes.append(8, '\0');
  detail::append(bytes, std::uint32_t{0x00010007});
  detail::append(bytes, std::uint32_t{90});
  bytes.resize(16 + 64, '\0');
  bytes.append(cubin);
  bytes.resize(16 + 64 + padded, '\0');
  return bytes;
}

/// What programs hand over in place of a fatbin, as the compiler embeds it.
struct FatBinaryWrapper {
  std::uint32_t magic = 0x466243b1;
  std::uint32_t version = 1;
  const void* fat_binary = nullptr;
  const void* file_name = nullptr;
};

}  // namespace simcuda
