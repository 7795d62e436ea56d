#include "gpu/image/module_variables.hpp"

#include <link.h>

#include <array>
#include <chrono>
#include <future>
#include <map>
#include <string>

#include "catch.hpp"
#include "fake_driver.hpp"
#include "gpu/image/fat_binary.hpp"

using namespace contextune::gpu;

namespace {

const auto module_a = reinterpret_cast<CUmodule>(0xa0);
const auto module_b = reinterpret_cast<CUmodule>(0xb0);
const auto library_a = reinterpret_cast<CUlibrary>(0x1a0);
const auto library_b = reinterpret_cast<CUlibrary>(0x1b0);
constexpr const char* counter_ptx = ".version 8.0\n.target sm_90\n.global .u32 counter;\n";
constexpr const char* table_ptx =
    ".version 8.0\n.target sm_90\n.const .b8 table[64];\n.global .u64 total;\n"
    ".extern .func (.param .b32 r) vprintf(.param .b64 a);\n";

/// A driver whose modules and libraries have variables, and how often it was asked for one.
struct Variables {
  std::map<std::pair<const void*, std::string>, CUdeviceptr> addresses;
  CUlibrary of_kernels = library_a;
  int asked = 0;

  CUresult find(CUdeviceptr* address, std::size_t* bytes, const void* handle, const char* name) {
    ++asked;
    const auto known = addresses.find({handle, name});
    if (known == addresses.end()) return CUDA_ERROR_NOT_FOUND;
    *address = known->second;
    *bytes = 4;
    return CUDA_SUCCESS;
  }
};
Variables variables;

Driver make_driver() {
  variables = Variables{};
  Driver driver = FakeDriver::make();
  driver.cuModuleGetGlobal = [](CUdeviceptr* address, std::size_t* bytes, CUmodule module,
                                const char* name) {
    return variables.find(address, bytes, module, name);
  };
  driver.cuLibraryGetGlobal = [](CUdeviceptr* address, std::size_t* bytes, CUlibrary library,
                                 const char* name) {
    return variables.find(address, bytes, library, name);
  };
  driver.cuCtxGetDevice = [](CUdevice* device) {
    *device = 0;
    return CUDA_SUCCESS;
  };
  driver.cuDeviceGetName = [](char*, int, CUdevice) { return CUDA_ERROR_UNKNOWN; };
  driver.cuDeviceGetAttribute = [](int*, CUdevice_attribute, CUdevice) {
    return CUDA_ERROR_UNKNOWN;
  };
  driver.cuFuncGetAttribute = [](int*, CUfunction_attribute, CUfunction) {
    return CUDA_ERROR_UNKNOWN;
  };
  driver.cuKernelGetLibrary = [](CUlibrary* library, CUkernel) {
    *library = variables.of_kernels;
    return CUDA_SUCCESS;
  };
  return driver;
}

KernelIdentity function_of(CUmodule module) {
  KernelIdentity kernel;
  kernel.kind = HandleKind::Function;
  kernel.function = kernel.handle = reinterpret_cast<CUfunction>(0x300);
  kernel.module = module;
  kernel.binary_version = 90;
  return kernel;
}

KernelIdentity kernel_of(CUlibrary library) {
  KernelIdentity kernel;
  kernel.kind = HandleKind::Kernel;
  kernel.handle = reinterpret_cast<CUfunction>(0x400);
  kernel.library = library;
  kernel.binary_version = 90;
  return kernel;
}

struct SeveralModules {
  const Driver driver = make_driver();
  ModuleVariables modules{driver};
};

}  // namespace

TEST_CASE_METHOD(SeveralModules, "A kernel's variables are those of its own module or library",
                 "[variables]") {
  modules.loaded(module_a, counter_ptx);
  modules.loaded(library_b, table_ptx);
  variables.addresses = {{{module_a, "counter"}, 0x1000},
                         {{library_b, "table"}, 0x2000},
                         {{library_b, "total"}, 0x3000}};

  const auto a = modules.of(function_of(module_a));
  CHECK(a->unknown.empty());
  REQUIRE(a->variables.size() == 1);
  CHECK(a->variables[0].address == 0x1000);
  CHECK(a->variables[0].bytes == 4);
  CHECK(a->variables[0].name == "counter");
  CHECK_FALSE(a->uses_printf);

  const auto b = modules.of(kernel_of(library_b));
  CHECK(b->unknown.empty());
  REQUIRE(b->variables.size() == 2);
  CHECK(b->variables[0].kind == VariableKind::Constant);
  CHECK(b->variables[1].address == 0x3000);
  CHECK(b->uses_printf);
}

TEST_CASE("Code is loaded while another thread waits for the loader to read an image",
          "[variables]") {
  // Whoever opens a library has the loader to itself, also while the library loads its code.
  static const std::array<std::uint64_t, 2> fat_binary{0x0010'0001'ba55'ed50, 0};
  static const FatBinaryWrapper wrapper{FatBinaryWrapper::right_magic, 1, &fat_binary, nullptr};
  const Driver driver = make_driver();
  ModuleVariables modules(driver);
  modules.loaded(library_a, &wrapper);
  std::future<void> reads;
  std::future<void> loads;
  const auto with_loader = [&] {
    reads = std::async(std::launch::async, [&] { (void)modules.image_of(kernel_of(library_a)); });
    CHECK(reads.wait_for(std::chrono::milliseconds(50)) == std::future_status::timeout);
    loads = std::async(std::launch::async, [&] { modules.loaded(module_b, counter_ptx); });
    CHECK(loads.wait_for(std::chrono::seconds(5)) == std::future_status::ready);
  };
  (void)dl_iterate_phdr(
      [](dl_phdr_info*, std::size_t, void* call) {
        (*static_cast<decltype(with_loader)*>(call))();
        return 1;
      },
      const_cast<void*>(static_cast<const void*>(&with_loader)));
  reads.get();
  loads.get();
}

TEST_CASE_METHOD(SeveralModules, "An answer is kept for each context, and until the unload",
                 "[variables]") {
  modules.loaded(library_a, counter_ptx);
  variables.addresses = {{{library_a, "counter"}, 0x1000}};
  const auto first = modules.of(kernel_of(library_a));
  CHECK(modules.of(kernel_of(library_a)) == first);
  CHECK(variables.asked == 1);

  FakeDriver::get().current = reinterpret_cast<CUcontext>(0x11);
  variables.addresses = {{{library_a, "counter"}, 0x5000}};
  CHECK(modules.of(kernel_of(library_a))->variables.at(0).address == 0x5000);
  FakeDriver::get().current = reinterpret_cast<CUcontext>(0x10);
  CHECK(modules.of(kernel_of(library_a)) == first);

  modules.unloads(library_a);
  CHECK(modules.of(kernel_of(library_a))->unknown ==
        "the load of the kernel's module was not seen");
  modules.loaded(library_a, counter_ptx);
  CHECK(modules.of(kernel_of(library_a))->variables.at(0).address == 0x5000);
}

TEST_CASE_METHOD(SeveralModules, "A module goes with its context, a library stays", "[variables]") {
  modules.loaded(library_a, counter_ptx);
  modules.loaded(module_a, counter_ptx);
  FakeDriver::get().current = reinterpret_cast<CUcontext>(0x11);
  modules.loaded(module_b, counter_ptx);
  variables.addresses = {{{library_a, "counter"}, 0x1000},
                         {{module_a, "counter"}, 0x2000},
                         {{module_b, "counter"}, 0x3000}};
  modules.context_goes_away(reinterpret_cast<CUcontext>(0x11));
  CHECK(modules.of(kernel_of(library_a))->unknown.empty());
  CHECK(modules.of(function_of(module_a))->unknown.empty());
  CHECK_FALSE(modules.of(function_of(module_b))->unknown.empty());
}

TEST_CASE_METHOD(SeveralModules,
                 "A function that a program got of a library has the library's variables",
                 "[variables]") {
  modules.loaded(library_a, counter_ptx);
  variables.addresses = {{{module_a, "counter"}, 0x1000}, {{module_b, "counter"}, 0x2000}};
  CHECK_FALSE(modules.of(function_of(module_a))->unknown.empty());

  modules.belongs(module_a, library_a);
  CHECK(modules.of(function_of(module_a))->variables.at(0).address == 0x1000);
  modules.belongs(function_of(module_b).function, reinterpret_cast<CUkernel>(0x500));
  CHECK(modules.of(function_of(module_b))->variables.at(0).address == 0x2000);

  modules.unloads(library_a);
  CHECK_FALSE(modules.of(function_of(module_a))->unknown.empty());
  CHECK_FALSE(modules.of(function_of(module_b))->unknown.empty());
}

TEST_CASE_METHOD(SeveralModules, "A function whose handle is made again is another one's library's",
                 "[variables]") {
  modules.loaded(library_a, counter_ptx);
  modules.loaded(library_b, counter_ptx);
  variables.addresses = {{{module_a, "counter"}, 0x1000}};
  const CUfunction function = function_of(module_a).function;
  const auto kernel = reinterpret_cast<CUkernel>(0x500);
  modules.belongs(function, kernel);
  CHECK(modules.is_known(function, kernel));
  CHECK(modules.owner_of(function_of(module_a)) == library_a);

  SECTION("its context has gone") {
    modules.context_goes_away(reinterpret_cast<CUcontext>(0x10));
  }
  SECTION("its library has gone") {
    modules.unloads(library_a);
  }
  CHECK_FALSE(modules.is_known(function, kernel));
  variables.of_kernels = library_b;
  modules.belongs(function, kernel);
  CHECK(modules.owner_of(function_of(module_a)) == library_b);
}

TEST_CASE_METHOD(SeveralModules, "What cannot be told comes with its reason", "[variables]") {
  modules.loaded(module_a, counter_ptx);
  CHECK(modules.of(function_of(module_a))->unknown ==
        "the driver does not find the variable counter: CUDA_ERROR_FAKE (made up)");
  modules.loaded(module_a, "no image at all");
  CHECK(modules.of(function_of(module_a))->unknown ==
        "the image that the kernel was loaded from is not known: its PTX cannot be read: it does "
        "not begin with .version");
  CHECK(modules.of(function_of(nullptr))->unknown ==
        "the driver does not tell what the kernel was loaded with");
  FakeDriver::get().current = nullptr;
  CHECK(modules.of(function_of(module_a))->unknown == "no CUDA context is current");
}

TEST_CASE_METHOD(
    SeveralModules,
    "Variables of modules whose kernels the program has are known, of others not asked for",
    "[variables]") {
  modules.loaded(module_a, counter_ptx);
  modules.loaded(module_b, counter_ptx);
  modules.loaded(library_a, table_ptx);
  variables.addresses = {{{module_a, "counter"}, 0x1000},
                         {{library_a, "table"}, 0x2000},
                         {{library_a, "total"}, 0x3000}};
  CHECK(modules.of_used().empty());

  modules.used(module_a, reinterpret_cast<CUfunction>(0x300));
  modules.used(library_a, CUkernel{});  // only the place of a variable
  const auto used = modules.of_used();
  REQUIRE(used.size() == 2);
  CHECK(used[0].owner == module_a);
  CHECK(used[0].use->variables.at(0).address == 0x1000);
  CHECK(used[1].owner == library_a);
  CHECK(used[1].use->variables.at(1).address == 0x3000);
  CHECK(variables.asked == 3);
  CHECK(modules.of_used().at(1).use == used[1].use);

  modules.unloads(module_a);
  CHECK(modules.of_used().size() == 1);
  modules.unloads(library_a);
  CHECK(modules.of_used().empty());
}

TEST_CASE_METHOD(
    SeveralModules,
    "A module that is used and cannot be read, or is another context's, is said to be unknown",
    "[variables]") {
  modules.used(module_b, CUfunction{});
  CHECK(modules.of_used().at(0).use->unknown == "the load of the kernel's module was not seen");

  modules.unloads(module_b);
  modules.loaded(module_a, counter_ptx);
  modules.used(module_a, reinterpret_cast<CUfunction>(0x300));
  variables.addresses = {{{module_a, "counter"}, 0x1000}};
  FakeDriver::get().current = reinterpret_cast<CUcontext>(0x11);
  CHECK(modules.of_used().at(0).use->unknown == "a module of another context has variables");
  CHECK(FakeDriver::get().current == reinterpret_cast<CUcontext>(0x11));

  // It goes with its context.
  modules.context_goes_away(reinterpret_cast<CUcontext>(0x10));
  CHECK(modules.of_used().empty());
}
