#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "catch.hpp"
#include "gpu/image/loaded_image.hpp"
#include "gpu/image/program_file.hpp"

using namespace contextune::gpu;

namespace {

constexpr const char* text = ".version 8.0\n.target sm_90\n.global .u32 counter;\n";

/// A fatbin with the PTX above, of a build that is not compressed.
struct FatBinary {
  std::uint32_t magic = 0xba55ed50;
  std::uint16_t version = 1;
  std::uint16_t header_bytes = 16;
  std::uint64_t bytes = 64 + sizeof(content);
  std::uint16_t kind = 1;
  std::uint16_t entry_version = 0x101;
  std::uint32_t entry_header_bytes = 64;
  std::uint64_t entry_bytes = sizeof(content);
  std::uint32_t unused[3]{};
  std::uint32_t architecture = 80;
  std::uint32_t names[2]{};
  std::uint64_t flags = 0x11;
  std::uint64_t more[2]{};
  char content[64] = ".version 8.0\n.target sm_80\n.global .u32 counter;\n";
};
static_assert(sizeof(FatBinary) == 16 + 64 + 64);

const FatBinary in_program;

struct Wrapper {
  std::uint32_t magic = 0x466243b1;
  std::uint32_t version = 1;
  const void* fat_binary = nullptr;
  const void* others = nullptr;
};

std::string why_not(LoadedImage& image) {
  std::string why;
  CHECK(image.read(90, why) == nullptr);
  return why;
}

void check_counter(LoadedImage& image) {
  std::string why;
  const auto code = image.read(90, why);
  INFO(why);
  REQUIRE(code);
  CHECK(code->variables == std::vector<ImageVariable>{{"counter", 4, VariableKind::Device}});
  CHECK(image.read(90, why) == code);
}

class ScratchFile {
 public:
  explicit ScratchFile(const void* bytes, std::size_t count) {
    std::string name = (std::filesystem::temp_directory_path() / "contextune-XXXXXX").string();
    const int descriptor = mkstemp(name.data());
    REQUIRE(descriptor >= 0);
    close(descriptor);
    path = name;
    write(bytes, count);
  }
  ~ScratchFile() { std::filesystem::remove(path); }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  void write(const void* bytes, std::size_t count) const {
    std::ofstream(path, std::ios::binary)
        .write(static_cast<const char*>(bytes), static_cast<std::streamsize>(count));
  }
  std::string path;
};

}  // namespace

TEST_CASE("An image on the heap is known after it was freed", "[image]") {
  for (const bool fat : {false, true}) {
    INFO(fat);
    const FatBinary binary;
    const std::size_t bytes = fat ? sizeof(binary) : std::strlen(text) + 1;
    // A mapping of its own: read after it is gone, it would end the process.
    void* memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    if (fat) {
      std::memcpy(memory, &binary, bytes);
    } else {
      std::memcpy(memory, text, bytes);
    }
    const auto image = LoadedImage::from_memory(memory);
    REQUIRE(munmap(memory, 4096) == 0);
    check_counter(*image);
  }
}

TEST_CASE("A fatbin in a program file is found through its wrapper", "[image]") {
  Wrapper wrapper;
  wrapper.fat_binary = &in_program;
  check_counter(*LoadedImage::from_memory(&wrapper));
  check_counter(*LoadedImage::from_memory(&in_program));
}

TEST_CASE("A fatbin of the executable stays, and others may go or change", "[image]") {
  static Wrapper wrapper;
  wrapper.fat_binary = &in_program;
  CHECK(fat_binary_of_program(&wrapper) == &in_program);
  static FatBinary changes;
  wrapper.fat_binary = &changes;
  CHECK(fat_binary_of_program(&wrapper) == nullptr);
  const auto on_heap = std::make_unique<FatBinary>();
  wrapper.fat_binary = on_heap.get();
  CHECK(fat_binary_of_program(&wrapper) == nullptr);
  wrapper.fat_binary = &in_program;
  wrapper.version = 2;
  CHECK(fat_binary_of_program(&wrapper) == &in_program);
  wrapper.others = &wrapper;
  CHECK(fat_binary_of_program(&wrapper) == nullptr);
  wrapper = {};
  CHECK(fat_binary_of_program(&wrapper) == nullptr);
  Wrapper on_stack;
  on_stack.fat_binary = &in_program;
  CHECK(fat_binary_of_program(&on_stack) == nullptr);
  static const char short_source[] = "";
  CHECK(fat_binary_of_program(short_source) == nullptr);
  CHECK(fat_binary_of_program(nullptr) == nullptr);
  CHECK(fat_binary_of_program(reinterpret_cast<const void*>(UINTPTR_MAX)) == nullptr);
}

TEST_CASE("What the driver links at the load is not taken for the whole", "[image]") {
  Wrapper wrapper;
  wrapper.version = 2;
  wrapper.fat_binary = &in_program;
  wrapper.others = &wrapper;
  CHECK(why_not(*LoadedImage::from_memory(&wrapper)) ==
        "the driver linked it at its load, from several fatbins");
}

TEST_CASE("A pointer to nothing is told, and nothing is touched", "[image]") {
  CHECK(why_not(*LoadedImage::from_memory(nullptr)) != "");
  CHECK(why_not(*LoadedImage::from_memory(reinterpret_cast<const void*>(16))) != "");
  Wrapper wrapper;
  wrapper.fat_binary = reinterpret_cast<const void*>(0x7fff'ffff'f000);
  CHECK(why_not(*LoadedImage::from_memory(&wrapper)) == "its fatbin has no header that is known");
}

TEST_CASE("An image that ends where memory ends is read", "[image]") {
  auto* memory = static_cast<char*>(
      mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  REQUIRE(memory != MAP_FAILED);
  REQUIRE(mprotect(memory + 4096, 4096, PROT_NONE) == 0);
  const std::size_t bytes = std::strlen(text) + 1;
  std::memcpy(memory + 4096 - bytes, text, bytes);
  check_counter(*LoadedImage::from_memory(memory + 4096 - bytes));
  REQUIRE(munmap(memory, 8192) == 0);
}

TEST_CASE("A fatbin that is too large to be copied is told", "[image]") {
  constexpr std::size_t large = 17 << 20;
  FatBinary binary;
  binary.bytes = large;
  std::vector<char> memory(large + 64);
  std::memcpy(memory.data(), &binary, sizeof(binary));
  CHECK(why_not(*LoadedImage::from_memory(memory.data())).find("too large") != std::string::npos);
}

TEST_CASE("A file is read once it is asked for, unless it was changed", "[image]") {
  const FatBinary binary;
  const ScratchFile file(&binary, sizeof(binary));
  check_counter(*LoadedImage::from_file(file.path, false));
  const auto image = LoadedImage::from_file(file.path, false);
  file.write(text, std::strlen(text));
  CHECK(why_not(*image).find("changed or removed") != std::string::npos);
  check_counter(*LoadedImage::from_file(file.path, false));
  CHECK(why_not(*LoadedImage::from_file(file.path + ".none", false)) != "");
}

TEST_CASE("The simulated driver's own image is read in the place of a file", "[image]") {
  const ScratchFile file(text, std::strlen(text));
  const std::string simulated = "simcuda image 1\nglobal total 8\n";
  std::ofstream(file.path + ".sim") << simulated;
  std::string why;
  const auto code = LoadedImage::from_file(file.path, true)->read(0, why);
  std::filesystem::remove(file.path + ".sim");
  REQUIRE(code);
  CHECK(code->variables.front().name == "total");
}

TEST_CASE("An image's stamp is that of its bytes, its file or the program that it is in",
          "[image]") {
  CHECK(LoadedImage::from_memory(text)->stamp().empty());  // it is read already
  CHECK(LoadedImage::from_memory(text)->is_quick_to_read());
  const std::string program = LoadedImage::from_memory(&in_program)->stamp();
  CHECK((program.starts_with("build ") || program.starts_with("file ")));
  CHECK(LoadedImage::from_memory(&in_program)->stamp() == program);
  FatBinary binary;
  const auto copy = std::make_unique<FatBinary>(binary);
  const std::string bytes = LoadedImage::from_memory(copy.get())->stamp();
  CHECK(bytes.starts_with("bytes "));
  copy->content[10] ^= 1;
  CHECK(LoadedImage::from_memory(copy.get())->stamp() != bytes);
  const ScratchFile file(&binary, sizeof binary);
  const std::string version = LoadedImage::from_file(file.path, false)->stamp();
  CHECK(version.starts_with("file "));
  CHECK(LoadedImage::from_file(file.path, false)->stamp() == version);
  file.write(&binary, sizeof binary);
  CHECK(LoadedImage::from_file(file.path, false)->stamp() != version);
}
