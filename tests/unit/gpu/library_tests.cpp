#include "catch.hpp"

#include <dlfcn.h>
#include <unistd.h>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include <contextune/error.hpp>

#include "fake_driver.hpp"
#include "gpu/clock/cupti_library.hpp"
#include "gpu/driver/loaded_library.hpp"
#include "gpu/driver/text_excerpt.hpp"
#include "gpu/image/kernel_code.hpp"

using namespace contextune;
using namespace contextune::gpu;

namespace {

/// A driver library in which some symbols are missing.
std::set<std::string> missing;

int dummy_version(int* version) {
  *version = 12040;
  return 0;
}

void* find_dummy(void*, const char* symbol) {
  if (missing.count(symbol) != 0) return nullptr;
  return reinterpret_cast<void*>(&dummy_version);
}

/// What a call complains about; empty if it does not.
template <typename Call>
std::string message(Call call) {
  try {
    (void)call();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("A driver without a needed entry point is refused by name", "[driver]") {
  missing = {"cuLaunchKernel", "simcuda_version"};
  CHECK(contains(message([&] { return load_driver(nullptr, &find_dummy); }), "cuLaunchKernel"));
}

TEST_CASE("An older driver lacks what is optional and offers first versions", "[driver]") {
  missing = {"cuKernelGetLibrary", "cuEventElapsedTime_v2", "simcuda_version"};
  const Driver driver = load_driver(nullptr, &find_dummy);
  CHECK(driver.cuKernelGetLibrary == nullptr);
  CHECK(driver.cuEventElapsedTime != nullptr);
  CHECK_FALSE(driver.simulated);
  CHECK(driver.version == 12040);
  missing = {};
  CHECK(load_driver(nullptr, &find_dummy).simulated);
}

TEST_CASE("Errors carry the driver's name and text", "[driver]") {
  const Driver driver = FakeDriver::make();
  CHECK(describe(driver, CUDA_ERROR_INVALID_VALUE) == "CUDA_ERROR_FAKE (made up)");
  CHECK(message([&] { return check(driver, CUDA_ERROR_INVALID_VALUE, "cuInit"), 0; }) ==
        "cuInit: CUDA_ERROR_FAKE (made up)");
  CHECK(message([&] { return check(driver, CUDA_SUCCESS, "cuInit"), 0; }).empty());
}

TEST_CASE("Loaded libraries are found by the start of their file name", "[library]") {
  const auto libc = loaded_libraries("libc.so");
  REQUIRE_FALSE(libc.empty());
  CHECK(libc.front().find('/') != std::string::npos);
  CHECK(loaded_libraries("libnobodyhasthis").empty());
}

TEST_CASE("A missing library is reported with what was tried", "[library]") {
  std::string path;
  std::string tried;
  CHECK(open_library({"libnobodyhasthis.so.7"}, {"/nowhere"}, path, tried) == nullptr);
  CHECK(tried == "libnobodyhasthis.so.7");
  CHECK(open_library({"libc.so.6"}, {}, path, tried) != nullptr);
  CHECK(path.find("libc.so.6") != std::string::npos);
}

TEST_CASE("A tool that is injected through the environment is named", "[library]") {
  const char* before = std::getenv("CUDA_INJECTION64_PATH");
  const std::string saved = before != nullptr ? before : "";
  setenv("CUDA_INJECTION64_PATH", "/opt/tool/libtool.so", 1);
  CHECK(profiler_in_process() == "the tool in CUDA_INJECTION64_PATH (/opt/tool/libtool.so)");
  setenv("CUDA_INJECTION64_PATH", "", 1);
  CHECK(profiler_in_process().empty());
  if (before != nullptr) {
    setenv("CUDA_INJECTION64_PATH", saved.c_str(), 1);
  } else {
    unsetenv("CUDA_INJECTION64_PATH");
  }
}

TEST_CASE("A log's excerpt ends after some lines and at its zero", "[library]") {
  CHECK(text_excerpt("").empty());
  CHECK(text_excerpt("one\n\ntwo\n") == "\n  one\n  two");
  CHECK(text_excerpt("a\nb\nc\nd", 2) == "\n  a\n  b");
  CHECK(text_excerpt(std::string_view("a\0b", 3)) == "\n  a");
}

TEST_CASE("Files of kernels are refused with the reason and what to do", "[code]") {
  Driver driver = FakeDriver::make();
  KernelCode code(driver);
  CHECK(contains(message([&] { return code.from_file("/nowhere/x.cubin", "k"); }),
                 "/nowhere/x.cubin: cannot be read: No such file"));
  const std::string path = (std::filesystem::temp_directory_path() /
                            ("contextune_code_" + std::to_string(getpid()) + ".ptx"))
                               .string();
  std::ofstream(path) << "// PTX";
  CHECK(contains(message([&] { return code.from_file(path, "k"); }), "driver is too old"));
  driver.cuLibraryLoadData = [](CUlibrary*, const void*, CUjit_option*, void** values, unsigned,
                                CUlibraryOption*, void**, unsigned) {
    std::snprintf(static_cast<char*>(values[0]), 100, "ptxas error: line 1\n");
    return CUDA_ERROR_INVALID_PTX;
  };
  CHECK(contains(message([&] { return code.from_file(path, "k"); }), "ptxas error: line 1"));
  driver.cuLibraryLoadData = [](CUlibrary* library, const void*, CUjit_option*, void**, unsigned,
                                CUlibraryOption*, void**, unsigned) {
    return *library = reinterpret_cast<CUlibrary>(0x30), CUDA_SUCCESS;
  };
  FakeDriver::get().kernels[reinterpret_cast<CUfunction>(0x1001)] = {
      "_Z4tileILi32ELi8EEvPfi", {}, 1, 0};
  CHECK(code.from_file(path, "") == reinterpret_cast<CUfunction>(0x1001));
  CHECK(code.from_file(path, "tile<32,8>") == reinterpret_cast<CUfunction>(0x1001));
  CHECK(contains(message([&] { return code.from_file(path, "other"); }),
                 "has no kernel other; it has tile<32, 8>"));
  FakeDriver::get().kernels[reinterpret_cast<CUfunction>(0x1002)] = {"second", {}, 1, 0};
  CHECK(contains(message([&] { return code.from_file(path, ""); }), "has 2 kernels"));
  driver.simulated = true;
  CHECK(contains(message([&] { return code.from_source(path, {}, "k"); }), "simulated driver"));
  std::filesystem::remove(path);
}
