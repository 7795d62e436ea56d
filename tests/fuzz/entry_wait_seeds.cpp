// Where the search of the entry wait's fuzz target begins: machine code with two kernels, made by
// hand so that no compiler is needed, for each form of a wait, alone and in a fatbin.
#include <elf.h>

#include <cstring>

#include "fuzz_target.hpp"
#include "gpu/image/entry_wait.hpp"

namespace {

using contextune::gpu::EntryWaitForm;

template <class T>
void append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

/// Instructions: the stack pointer's load, `second`, a branch to itself, and NOPs.
std::string code_with(std::uint64_t second) {
  std::string bytes;
  for (const std::uint64_t word :
       {0x00000a00ff017b82ULL, 0x000fe20000000800ULL, static_cast<unsigned long long>(second),
        0x000fea0003800000ULL, 0xfffffffc00fc7947ULL, 0x000fc0000383ffffULL}) {
    append(bytes, word);
  }
  while (bytes.size() < 128) {
    append(bytes, std::uint64_t{0x7918});
    append(bytes, std::uint64_t{0x000fc00000000000});
  }
  return bytes;
}

/// @param form of the first one's wait: the driver changes an instruction of it, so that it needs a
///             detour, or it uses its stack pointer, so that it moves
std::string machine_code(EntryWaitForm form) {
  const char all_names[] = "\0.text.a\0.text.b\0.rela.text.a\0.nv.info\0.nv.info.a\0a\0b";
  const std::string names(all_names, sizeof all_names);
  const auto name_of = [&](const char* name) {
    return static_cast<Elf64_Word>(names.find(std::string(name) + '\0'));
  };
  std::string bytes(sizeof(Elf64_Ehdr), '\0');
  Elf64_Shdr sections[8]{};
  const auto add = [&](int index, const char* name, Elf64_Word type, const std::string& content) {
    sections[index].sh_name = name_of(name);
    sections[index].sh_type = type;
    sections[index].sh_offset = bytes.size();
    sections[index].sh_size = content.size();
    bytes += content;
  };
  Elf64_Sym symbols[3]{};
  for (Elf64_Half i = 1; i < 3; ++i) {
    symbols[i].st_name = name_of(i == 1 ? "a" : "b");
    symbols[i].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    symbols[i].st_other = 0x10;
    symbols[i].st_shndx = static_cast<Elf64_Half>(i + 2);
    symbols[i].st_size = 128;
  }
  Elf64_Rela relocation{};
  relocation.r_offset = 16;
  std::string table;
  append(table, symbols);
  std::string relocations;
  append(relocations, relocation);
  std::string facts;
  for (const std::uint32_t word : {0x00082f04U, 1U, 32U}) append(facts, word);
  add(1, "", SHT_STRTAB, names);
  add(2, "", SHT_SYMTAB, table);
  sections[2].sh_entsize = sizeof(Elf64_Sym);
  sections[2].sh_link = 1;
  add(3, ".text.a", SHT_PROGBITS,
      code_with(form == EntryWaitForm::Moved ? 0xfffffff801017836 : 0x794d));
  add(4, ".text.b", SHT_PROGBITS, code_with(0x782e));
  sections[3].sh_flags = sections[4].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
  add(5, ".rela.text.a", SHT_RELA, relocations);
  sections[5].sh_entsize = sizeof(Elf64_Rela);
  sections[5].sh_info = 3;
  if (form != EntryWaitForm::Detour) sections[5].sh_type = SHT_NOTE;
  add(6, ".nv.info", SHT_LOPROC, facts);
  std::string exits;  // bounds of registers, and where it ends
  for (const std::uint32_t word : {0x00ff1b03U, 0x00041c04U, 16U}) append(exits, word);
  add(7, ".nv.info.a", SHT_LOPROC, exits);
  sections[7].sh_info = 3;
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_ABIVERSION] = 8;
  header.e_type = ET_EXEC;
  header.e_machine = 190;
  header.e_flags = 0x6005a04;
  header.e_shoff = bytes.size();
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 8;
  header.e_shstrndx = 1;
  std::memcpy(bytes.data(), &header, sizeof header);
  append(bytes, sections);
  return bytes;
}

std::string fatbin_of(const std::string& code) {
  std::string entry;
  append(entry, std::uint32_t{0x01010002});  // machine code
  append(entry, std::uint32_t{64});
  append(entry, std::uint64_t{code.size()});
  append(entry, std::uint64_t{0});
  append(entry, std::uint32_t{0x00080000});
  append(entry, std::uint32_t{90});
  entry.resize(64);
  std::string bytes;
  append(bytes, std::uint32_t{0xba55ed50});
  append(bytes, std::uint32_t{0x00100001});
  append(bytes, std::uint64_t{entry.size() + code.size()});
  return bytes + entry + code;
}

}  // namespace

FuzzInputs fuzz_inputs() {
  FuzzInputs inputs;
  for (const auto form : {EntryWaitForm::Detour, EntryWaitForm::InPlace, EntryWaitForm::Moved}) {
    const std::string code = machine_code(form);
    inputs.seeds.push_back(code);
    inputs.seeds.push_back(fatbin_of(code));
  }
  for (const std::string& word :
       {code_with(0x794d).substr(0, 16), code_with(0x794d).substr(32, 16),
        code_with(0x794d).substr(48, 16), code_with(0x782e).substr(16, 16),
        code_with(0x782d).substr(16, 16), code_with(0xfffffff801017836).substr(16, 16),
        code_with(0x0000000000007944).substr(16, 16), std::string(".nv.info"),
        std::string(".text.")}) {
    inputs.words.push_back(word);
  }
  return inputs;
}
