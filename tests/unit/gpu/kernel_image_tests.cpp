#include <elf.h>

#include <array>
#include <cstring>
#include <string>

#include "catch.hpp"
#include "gpu/image/kernel_image.hpp"

using namespace contextune::gpu;

namespace {

std::optional<KernelImage> read(std::string_view image) {
  std::string why;
  auto code = read_kernel_image(BufferSource(image), 90, why);
  CHECK(code.has_value() == why.empty());
  return code;
}

std::string refusal(std::string_view image) {
  std::string why;
  CHECK_FALSE(read_kernel_image(BufferSource(image), 90, why));
  return why;
}

KernelImage ptx(const std::string& declarations) {
  const auto code =
      read("// Made by hand\n.version 8.0\n.target sm_90\n.address_size 64\n" + declarations);
  REQUIRE(code);
  return *code;
}

/// Machine code with one symbol, of a variable that no section holds yet.
std::string cubin_with_common(std::uint32_t name, std::uint64_t bytes) {
  constexpr Elf64_Half machine_cuda = 190;
  struct File {
    Elf64_Ehdr header;
    std::array<Elf64_Shdr, 3> sections;  // none, names, symbols
    std::array<Elf64_Sym, 2> symbols;    // none, and the variable
    std::array<char, 8> names;
  } file{};
  std::memcpy(file.header.e_ident, ELFMAG, SELFMAG);
  file.header.e_ident[EI_CLASS] = ELFCLASS64;
  file.header.e_ident[EI_DATA] = ELFDATA2LSB;
  file.header.e_machine = machine_cuda;
  file.header.e_shoff = offsetof(File, sections);
  file.header.e_shentsize = sizeof(Elf64_Shdr);
  file.header.e_shnum = 3;
  file.header.e_shstrndx = 1;
  file.sections[1].sh_type = SHT_STRTAB;
  file.sections[1].sh_offset = offsetof(File, names);
  file.sections[1].sh_size = sizeof file.names;
  file.sections[2].sh_type = SHT_SYMTAB;
  file.sections[2].sh_offset = offsetof(File, symbols);
  file.sections[2].sh_size = sizeof file.symbols;
  file.sections[2].sh_entsize = sizeof(Elf64_Sym);
  file.sections[2].sh_link = 1;
  file.symbols[1].st_name = name;
  file.symbols[1].st_size = bytes;
  file.symbols[1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
  file.symbols[1].st_shndx = SHN_COMMON;
  std::memcpy(file.names.data(), "\0state", 7);
  return {reinterpret_cast<const char*>(&file), sizeof file};
}

}  // namespace

TEST_CASE("No bytes at all can be read to nowhere", "[kernel_image]") {
  CHECK(BufferSource("image").read_some(2, nullptr, 0) == 0);
}

TEST_CASE("A variable without a section has a name and a size as any other", "[image]") {
  const std::vector<ImageVariable> wanted{{"state", 64, VariableKind::Device}};
  CHECK(read(cubin_with_common(1, 64))->variables == wanted);
  const std::string unreadable = "its machine code cannot be read: ";
  CHECK(refusal(cubin_with_common(0, 64)) == unreadable + "it has a variable without a name");
  CHECK(refusal(cubin_with_common(1, ~std::uint64_t{0})) == unreadable + "a variable is too large");
}

TEST_CASE("PTX declares variables in every form", "[image]") {
  const KernelImage code = ptx(R"(
    .global .align 4 .u32 a;
    .visible .global .align 16 .v4 .f32 b[3];
    .weak .global .attribute(.managed) .b8 c[2][5];
    .const .f64 d = 0d4004000000000000;
    .global .u16 e[0x10] = {1, 2, 3}, f; /* .global .u8 not; */
    .global .b64 g[2] = {generic(a), 0}; // .global .u8 nor;
    .global .texref not_memory;
    .extern .global .u8 h[];
    .file 1 "with .global .u8 text;"
  )");
  using Kind = VariableKind;
  const std::vector<ImageVariable> wanted{{"a", 4, Kind::Device},   {"b", 48, Kind::Device},
                                          {"c", 10, Kind::Managed}, {"d", 8, Kind::Constant},
                                          {"e", 32, Kind::Device},  {"f", 2, Kind::Device},
                                          {"g", 16, Kind::Device},  {"h", 0, Kind::Device}};
  CHECK(code.variables == wanted);
}

TEST_CASE("What stands inside a function of PTX declares no variable", "[image]") {
  const KernelImage code = ptx(R"(
    .visible .entry k(.param .u64 .ptr .global .align 8 p, .param .u32 n) {
      .shared .align 4 .b8 s[128];
      { ld.global.u32 %r1, [p]; }
      .pragma "} .global .u8 text;";
    }
    .global .u32 after;
  )");
  CHECK(code.variables == std::vector<ImageVariable>{{"after", 4, VariableKind::Device}});
}

TEST_CASE("PTX says which functions it takes from the driver", "[image]") {
  CHECK(ptx(".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);").uses_printf);
  CHECK(ptx(".extern .func free(.param .b64 a);").uses_malloc);
  CHECK(ptx(".extern .func (.param .b64 r) malloc(.param .b64 a);").uses_malloc);
  CHECK(ptx(".extern .func (.param .b32 r) cudaLaunchDeviceV2(.param .b64 a);").launches_kernels);
  CHECK(ptx(".extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(.param .b64 a);")
            .launches_kernels);
  const KernelImage own =
      ptx(".visible .func (.param .b32 r) vprintf(.param .b64 a) { ret; }\n"
          ".extern .func __assertfail(.param .b64 a);");
  CHECK_FALSE(own.uses_printf);
  CHECK_FALSE(own.uses_malloc);
  CHECK_FALSE(own.launches_kernels);
}

TEST_CASE("PTX that ends within a declaration is refused", "[image]") {
  const std::string begin = ".version 8.0\n.target sm_90\n";
  for (const char* rest : {".global", ".global .u32", ".global .u32 a", ".global .u32 a[",
                           ".global .u32 a = {1, 2", ".entry k() {", ".entry k(", ".extern .func",
                           ".extern .func (", ".global .attribute(.managed"}) {
    INFO(rest);
    CHECK(refusal(begin + rest) == "its PTX cannot be read: it is cut off");
  }
}

TEST_CASE("A simulated image declares its variables line by line", "[image]") {
  const auto code = read(
      "simcuda image 1\nlibrary kernels.so\nkernel tile<1, 2>\nglobal total 8\n"
      "global flags 400 # of steps\n# global no 4\nglobal total 8\n");
  REQUIRE(code);
  const std::vector<ImageVariable> wanted{{"flags", 400, VariableKind::Device},
                                          {"total", 8, VariableKind::Device}};
  CHECK(code->variables == wanted);
}

TEST_CASE("What is no image is refused with a reason", "[image]") {
  const std::string unknown = "it is neither machine code, a fatbin nor PTX";
  CHECK(refusal("") == unknown);
  CHECK(refusal(std::string_view("\0\0\0\0", 4)) == unknown);
  CHECK(refusal("\xde\xc0\x17\x0b bitcode") == unknown);
  CHECK(refusal("int main() {}") == "its PTX cannot be read: it does not begin with .version");
  CHECK(refusal("\177ELF") == "its machine code cannot be read: it has no ELF header");
  CHECK(refusal("\x50\xed\x55\xba") == "its fatbin has no header that is known");
}

TEST_CASE("A kernel of PTX has other code where it or what it may call is other", "[image]") {
  const auto with = [](const std::string& function, const std::string& one,
                       const std::string& other) {
    return ptx(".func helper() { " + function + "; }\n.visible .entry one(.param .u64 p) { " + one +
               "; }\n.visible .entry other(.param .u64 p) .maxntid 256 { " + other + "; }\n")
        .code;
  };
  const auto code = with("ret", "add", "mul");
  REQUIRE(code.size() == 2);
  CHECK(code.at("one") != code.at("other"));
  CHECK(with("ret", "add", "mul") == code);
  CHECK(with("ret", "sub", "mul").at("one") != code.at("one"));
  CHECK(with("ret", "sub", "mul").at("other") == code.at("other"));
  CHECK(with("exit", "add", "mul").at("one") != code.at("one"));
  CHECK(with("exit", "add", "mul").at("other") != code.at("other"));
}

TEST_CASE("An image of the simulated driver says what stands for its kernels' code", "[image]") {
  const auto code = read("simcuda image 1\ncode gemm first\ncode axpy second # not this\n")->code;
  REQUIRE(code.size() == 2);
  CHECK(read("simcuda image 1\n# more\ncode gemm first\n")->code.at("gemm") == code.at("gemm"));
  CHECK(read("simcuda image 1\ncode gemm second\n")->code.at("gemm") == code.at("axpy"));
}
