// Images that the compiler made of tests/gpu/module_variables.cu and of the sources beside this.
#include <elf.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "catch.hpp"
#include "gpu/driver/kernel_access.hpp"
#include "gpu/image/fat_binary.hpp"
#include "gpu/image/kernel_image.hpp"
#include "gpu/image/loaded_image.hpp"
#include "tests/case_step.hpp"

using namespace contextune::gpu;

namespace {

constexpr int sm_90 = 90;

std::string content(const std::string& name) {
  std::ifstream file(std::string(CONTEXTUNE_TEST_IMAGES) + "/" + name, std::ios::binary);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> fat_binaries() {
  std::vector<std::string> names;
  for (const auto& one : std::filesystem::directory_iterator(CONTEXTUNE_TEST_IMAGES)) {
    if (one.path().extension() == ".fatbin") names.push_back(one.path().filename().string());
  }
  REQUIRE(names.size() >= 2);
  return names;
}

std::optional<KernelImage> read(const std::string& image, int binary_version = sm_90) {
  std::string why;
  auto code = read_kernel_image(BufferSource(image), binary_version, why);
  INFO(why);
  CHECK(code.has_value() == why.empty());
  return code;
}

/// The only variable whose name has `part`.
ImageVariable variable(const KernelImage& code, const std::string& part) {
  std::vector<ImageVariable> found;
  std::copy_if(code.variables.begin(), code.variables.end(), std::back_inserter(found),
               [&](const auto& one) { return one.name.find(part) != std::string::npos; });
  INFO(part);
  REQUIRE(found.size() == 1);
  return found.front();
}

void check_variables(const KernelImage& code) {
  using Kind = VariableKind;
  CHECK(variable(code, "plain_counter").bytes == 4);
  CHECK(variable(code, "plain_counter").kind == Kind::Device);
  CHECK(variable(code, "static_counter").kind == Kind::Device);
  CHECK(variable(code, "unnamed_counter").bytes == 4);
  CHECK(variable(code, "initialised").bytes == 16);
  CHECK(variable(code, "managed_counter").kind == Kind::Managed);
  CHECK(variable(code, "constant_table").kind == Kind::Constant);
  CHECK(variable(code, "constant_table").bytes == 64);
  CHECK(variable(code, "11in_templateILi5E").bytes == 40);
  CHECK(variable(code, "18static_in_templateILi2E").bytes == 8);
  CHECK(variable(code, "odd_bytes").bytes == 3);
  CHECK(variable(code, "in_kernel").bytes == 4);
  CHECK_FALSE(code.uses_printf);
  CHECK_FALSE(code.uses_malloc);
  CHECK_FALSE(code.launches_kernels);
}

/// Every image cut off after each byte: none may be taken for the whole, and none may crash.
void check_cut_off(const std::string& image, const KernelImage& whole) {
  for (std::size_t bytes = 0; bytes < image.size(); bytes += case_step) {
    std::string why;
    const auto code =
        read_kernel_image(BufferSource(std::string_view(image).substr(0, bytes)), sm_90, why);
    // What is behind the last table that is read may be missing.
    if (code ? *code != whole : why.empty()) FAIL("cut off after " << bytes << " bytes");
  }
}

}  // namespace

TEST_CASE("Machine code and PTX have the variables of their source", "[image]") {
  for (const char* name : {"variables.cubin", "variables.ptx"}) {
    INFO(name);
    const auto code = read(content(name));
    REQUIRE(code);
    check_variables(*code);
  }
}

TEST_CASE("A fatbin has the same variables however it is compressed", "[image]") {
  const auto alone = read(content("variables.cubin"));
  for (const std::string& name : fat_binaries()) {
    INFO(name);
    const std::string image = content(name);
    const auto code = read(image);
    REQUIRE(code);
    check_variables(*code);
    CHECK(code->variables == alone->variables);
  }
}

TEST_CASE("A device without machine code in a fatbin gets the PTX's variables", "[image]") {
  for (const std::string& name : fat_binaries()) {
    INFO(name);
    const std::string image = content(name);
    const auto newer = read(image, 100);
    REQUIRE(newer);
    check_variables(*newer);
    std::string why;
    CHECK_FALSE(read_kernel_image(BufferSource(image), 80, why));
    CHECK(why == "its fatbin has neither machine code for sm_80 nor PTX for it");
  }
}

TEST_CASE("Each kernel's instructions have a hash, the same however a fatbin is compressed",
          "[image]") {
  const auto alone = read(content("variables.cubin"))->code;
  REQUIRE_FALSE(alone.empty());
  for (const std::string& name : fat_binaries()) {
    INFO(name);
    CHECK(read(content(name))->code == alone);
  }
  const auto ptx = read(content("variables.ptx"))->code;
  CHECK(ptx.size() == alone.size());
  for (const auto& [symbol, hash] : alone) CHECK(ptx.contains(symbol));
  // One byte of one kernel's instructions.
  std::string image = content("variables.cubin");
  Elf64_Ehdr header;
  std::memcpy(&header, image.data(), sizeof header);
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  std::memcpy(sections.data(), image.data() + header.e_shoff, sections.size() * sizeof(Elf64_Shdr));
  const std::string& first = alone.begin()->first;
  const std::string names = image.substr(sections[header.e_shstrndx].sh_offset);
  for (const Elf64_Shdr& one : sections)
    if (names.c_str() + one.sh_name == ".text." + first) image[one.sh_offset] ^= 1;
  const auto changed = read(image)->code;
  for (const auto& [symbol, hash] : alone) CHECK((changed.at(symbol) == hash) == (symbol != first));
}

TEST_CASE("PTX tells what a kernel reads and writes, in a fatbin or beside machine code",
          "[image]") {
  const auto access = [](const std::string& image, const std::string& ptx = {}) {
    return LoadedImage::from_memory(image.c_str(), ptx)->access_of("count", sm_90);
  };
  const std::string ptx = content("variables.ptx");
  const KernelAccess alone = access(ptx);
  CHECK(alone.unknown == "");
  CHECK(std::any_of(alone.places.begin(), alone.places.end(), [](const auto& place) {
    return place.variable.find("in_kernel") != std::string::npos;
  }));
  std::vector<KernelAccess> all{access(content("variables.cubin"), ptx)};
  for (const std::string& name : fat_binaries()) all.push_back(access(content(name)));
  for (const KernelAccess& one : all) {
    CHECK(one.unknown.empty());
    CHECK(one.uses == alone.uses);
    CHECK(one.places.size() == alone.places.size());
  }
  CHECK(access(content("variables.cubin")).unknown == "its image has no PTX for it");
}

TEST_CASE("What code takes from the driver is told", "[image]") {
  const auto functions = read(content("functions.cubin"));
  REQUIRE(functions);
  CHECK(functions->uses_printf);
  CHECK(functions->uses_malloc);
  CHECK_FALSE(functions->launches_kernels);
  const auto launch = read(content("launch.cubin"));
  REQUIRE(launch);
  CHECK(launch->launches_kernels);
  CHECK_FALSE(launch->uses_printf);
  CHECK(variable(*launch, "launched").bytes == 4);
}

TEST_CASE("Machine code with memory that no variable's name leads to is refused", "[image]") {
  std::string image = content("variables.cubin");
  const auto at = [&]<typename T>(std::uint64_t offset, T) {
    T value;
    std::memcpy(&value, image.data() + offset, sizeof(T));
    return value;
  };
  const auto header = at(0, Elf64_Ehdr{});
  for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
    const auto section = at(header.e_shoff + i * sizeof(Elf64_Shdr), Elf64_Shdr{});
    if (section.sh_type != SHT_SYMTAB) continue;
    // All variables lose their names, as if a tool had stripped the file.
    for (std::uint64_t k = 0; k < section.sh_size; k += sizeof(Elf64_Sym)) {
      auto symbol = at(section.sh_offset + k, Elf64_Sym{});
      if (ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT) symbol.st_info = STT_NOTYPE;
      std::memcpy(image.data() + section.sh_offset + k, &symbol, sizeof(symbol));
    }
  }
  std::string why;
  CHECK_FALSE(read_kernel_image(BufferSource(image), sm_90, why));
  CHECK(why.find("it has memory that no name leads to, in .nv.global") != std::string::npos);
}

TEST_CASE("An image that is cut off is told or read as the whole", "[image]") {
  for (const char* name : {"variables.cubin", "functions.cubin"}) {
    INFO(name);
    const std::string image = content(name);
    check_cut_off(image, *read(image));
  }
  for (const std::string& name : fat_binaries()) {
    INFO(name);
    const std::string image = content(name);
    check_cut_off(image, *read(image));
  }
}

TEST_CASE("PTX that is cut off is refused or has fewer variables", "[image]") {
  const std::string image = content("variables.ptx");
  const KernelImage whole = *read(image);
  for (std::size_t bytes = 0; bytes < image.size(); bytes += case_step) {
    std::string why;
    const auto code =
        read_kernel_image(BufferSource(std::string_view(image).substr(0, bytes)), sm_90, why);
    if (code ? code->variables.size() > whole.variables.size() : why.empty()) {
      FAIL("cut off after " << bytes << " bytes");
    }
  }
}

TEST_CASE("An image with any byte changed is read or refused with a reason", "[image]") {
  std::vector<std::string> names = fat_binaries();
  names.insert(names.end(), {"variables.cubin", "functions.cubin", "launch.cubin"});
  for (const std::string& name : names) {
    INFO(name);
    std::string image = content(name);
    const std::size_t step = std::max<std::size_t>(image.size() / 3000, 1);
    for (std::size_t at = 0; at < image.size(); at += case_step * (at < 2048 ? 1 : step)) {
      for (const unsigned mask : {0xffU, 0x01U, 0x80U}) {
        image[at] = static_cast<char>(static_cast<unsigned char>(image[at]) ^ mask);
        std::string why;
        if (!read_kernel_image(BufferSource(image), sm_90, why)) CHECK_FALSE(why.empty());
        image[at] = static_cast<char>(static_cast<unsigned char>(image[at]) ^ mask);
      }
    }
  }
}
