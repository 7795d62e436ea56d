// Where the search of the kernel image's fuzz target begins: PTX, machine code, and fatbins of both
// as the compiler packs them, made by hand so that no compiler is needed.
#include <elf.h>
#include <lz4.h>
#include <zstd.h>

#include <cstring>

#include "fuzz_target.hpp"

namespace {

constexpr const char* ptx = R"(// Made by hand
.version 8.0
.target sm_90
.address_size 64
.global .align 4 .u32 a;
.visible .global .align 16 .v4 .f32 b[3];
.weak .global .attribute(.managed) .b8 c[2][5];
.const .f64 d = 0d4004000000000000;
.global .u16 e[0x10] = {1, 2, 3}, f; /* .global .u8 not; */
.global .b64 g[2] = {generic(a), 0}; // .global .u8 nor;
.global .texref not_memory;
.extern .global .u8 h[];
.extern .func (.param .b32 r) vprintf (.param .b64 p, .param .b64 q);
.extern .func (.param .b64 r) malloc(.param .b64 p);
.extern .func (.param .b32 r) cudaLaunchDeviceV2(.param .b64 p);
.visible .entry k(.param .u64 .ptr .global .align 8 p, .param .u32 n) {
  .shared .align 4 .b8 s[128];
  { ld.global.u32 %r1, [p]; }
  .pragma "} .global .u8 text;";
}
.file 1 "with .global .u8 text;"
)";

template <class T>
void append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

Elf64_Sym symbol(Elf64_Word name, unsigned char type, unsigned char other, Elf64_Half section,
                 Elf64_Addr value, Elf64_Xword size) {
  Elf64_Sym made{};
  made.st_name = name;
  made.st_info = ELF64_ST_INFO(STB_GLOBAL, type);
  made.st_other = other;
  made.st_shndx = section;
  made.st_value = value;
  made.st_size = size;
  return made;
}

/// With a variable in memory of its own, one that is managed, a constant, and a function of the
/// driver's.
std::string cubin() {
  const char names[] =
      "\0.shstrtab\0.strtab\0.symtab\0.nv.global\0.nv.constant3\0total\0flags\0scale\0vprintf";
  const auto at = [&](const char* name) {
    for (std::size_t i = 1; i < sizeof(names); i += std::strlen(names + i) + 1)
      if (std::strcmp(names + i, name) == 0) return static_cast<Elf64_Word>(i);
    return Elf64_Word{0};
  };
  const Elf64_Sym symbols[] = {{},
                               symbol(at("total"), STT_OBJECT, 0, 3, 0, 8),
                               symbol(at("flags"), STT_OBJECT, 4, 3, 8, 400),
                               symbol(at("scale"), STT_OBJECT, 0, 4, 0, 16),
                               symbol(at("vprintf"), STT_FUNC, 0, SHN_UNDEF, 0, 0)};
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_machine = 190;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 5;
  header.e_shstrndx = 1;
  const Elf64_Off after_names = sizeof(header) + sizeof(names);
  header.e_shoff = after_names + sizeof(symbols);
  Elf64_Shdr sections[5]{};
  sections[1] = {at(".shstrtab"), SHT_STRTAB, 0, 0, sizeof(header), sizeof(names), 0, 0, 1, 0};
  sections[2] = {at(".symtab"),   SHT_SYMTAB, 0, 0, after_names,
                 sizeof(symbols), 1,          1, 8, sizeof(Elf64_Sym)};
  sections[3] = {
      at(".nv.global"), SHT_NOBITS, SHF_WRITE | SHF_ALLOC, 0, header.e_shoff, 408, 0, 0, 8, 0};
  sections[4] = {at(".nv.constant3"), SHT_PROGBITS, SHF_ALLOC, 0, sizeof(header), 16, 0, 0, 8, 0};
  std::string bytes;
  append(bytes, header);
  append(bytes, names);
  append(bytes, symbols);
  append(bytes, sections);
  return bytes;
}

enum class Packed { Plain, Lz4, Zstd };

std::string packed(const std::string& content, Packed how) {
  if (how == Packed::Plain) return content;
  const int size = static_cast<int>(content.size());
  std::string bytes(how == Packed::Lz4 ? static_cast<std::size_t>(LZ4_compressBound(size))
                                       : ZSTD_compressBound(content.size()),
                    '\0');
  bytes.resize(how == Packed::Lz4
                   ? static_cast<std::size_t>(LZ4_compress_default(
                         content.data(), bytes.data(), size, static_cast<int>(bytes.size())))
                   : ZSTD_compress(bytes.data(), bytes.size(), content.data(), content.size(), 3));
  return bytes;
}

std::string fatbin_entry(const std::string& content, std::uint16_t kind, std::uint32_t architecture,
                         Packed how) {
  const std::string stored = packed(content, how);
  constexpr std::uint64_t flag_lz4 = 0x2000;
  constexpr std::uint64_t flag_zstd = 0x8000;
  std::string bytes;
  append(bytes, kind);
  append(bytes, std::uint16_t{0x0101});
  append(bytes, std::uint32_t{64});
  append(bytes, std::uint64_t{stored.size()});
  append(bytes, how == Packed::Plain ? 0U : static_cast<std::uint32_t>(stored.size()));
  append(bytes, std::uint32_t{0});
  append(bytes, std::uint32_t{0x00080000});
  append(bytes, architecture);
  append(bytes, std::uint64_t{0});
  append(bytes, how == Packed::Lz4 ? flag_lz4 : how == Packed::Zstd ? flag_zstd : 0);
  append(bytes, std::uint64_t{0});
  append(bytes, std::uint64_t{how == Packed::Plain ? 0 : content.size()});
  return bytes + stored;
}

std::string fatbin(const std::string& entries) {
  std::string bytes;
  append(bytes, std::uint32_t{0xba55ed50});
  append(bytes, std::uint16_t{1});
  append(bytes, std::uint16_t{16});
  append(bytes, std::uint64_t{entries.size()});
  return bytes + entries;
}

}  // namespace

FuzzInputs fuzz_inputs() {
  constexpr std::uint16_t kind_ptx = 1;
  constexpr std::uint16_t kind_cubin = 2;
  FuzzInputs inputs;
  inputs.seeds = {ptx, cubin(),
                  "simcuda image 1\nlibrary kernels.so\nkernel tile<1, 2>\nglobal total 8\n"
                  "global flags 400 # of steps\n"};
  for (const Packed how : {Packed::Plain, Packed::Lz4, Packed::Zstd}) {
    const std::string code = fatbin_entry(cubin(), kind_cubin, 90, how);
    const std::string text = fatbin_entry(ptx, kind_ptx, 80, how);
    inputs.seeds.push_back(fatbin(code + text));
    inputs.seeds.push_back(fatbin(text + text));
    inputs.seeds.push_back(fatbin(code + code));
  }
  for (const char* word : {".version 8.0",
                           ".target sm_90",
                           ".global",
                           ".const",
                           ".extern",
                           ".func",
                           ".entry",
                           ".visible",
                           ".weak",
                           ".param",
                           ".align 4",
                           ".v4",
                           ".u32",
                           ".b8",
                           ".b64",
                           ".f64",
                           ".attribute(.managed)",
                           ".texref",
                           ".file",
                           ".pragma",
                           "[0x10]",
                           "[]",
                           "{1, 2}",
                           "//",
                           "/*",
                           "*/",
                           "\"",
                           ";",
                           "(",
                           ")",
                           "{",
                           "}",
                           "vprintf",
                           "malloc",
                           "cudaLaunchDevice",
                           ".nv.global",
                           ".nv.constant3",
                           "$str",
                           "__unnamed_1",
                           "simcuda image ",
                           "\nglobal x 8\n"})
    inputs.words.emplace_back(word);
  return inputs;
}
