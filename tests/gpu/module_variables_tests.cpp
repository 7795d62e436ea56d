// Where ModuleVariables finds a program's variables, against where the CUDA runtime has them.
#include "gpu/image/module_variables.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <span>
#include <string>

#include "catch.hpp"
#include "gpu_fixture.hpp"
#include "module_variables.hpp"

using namespace contextune::gpu;

namespace {

// Filled before main, when the runtime's constructors run.
std::array<const void*, 16> registered;
std::size_t num_registered = 0;

Gpu& the_gpu() {
  static auto* gpu = new Gpu;
  return *gpu;
}

const VariableRange& variable(const ModuleUse& use, const std::string& part) {
  const auto has_part = [&](const auto& one) { return one.name.find(part) != std::string::npos; };
  INFO(part);
  REQUIRE(std::count_if(use.variables.begin(), use.variables.end(), has_part) == 1);
  return *std::find_if(use.variables.begin(), use.variables.end(), has_part);
}

KernelIdentity identity_of(CUfunction handle) {
  std::string why;
  const auto kernel = identify(the_gpu().driver, handle, why);
  INFO(why);
  REQUIRE(kernel);
  return *kernel;
}

int value_at(const VariableRange& range) {
  int value = 0;
  check(the_gpu().driver, the_gpu().driver.cuMemcpyDtoH(&value, range.address, sizeof(value)),
        "cuMemcpyDtoH");
  return value;
}

std::string image(const std::string& name) {
  const char* folder = std::getenv("CONTEXTUNE_TEST_KERNELS");
  const std::string path =
      std::string(folder != nullptr ? folder : CONTEXTUNE_TEST_KERNELS) + "/" + name;
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

extern "C" void** __cudaRegisterFatBinary(void* wrapper) {
  if (num_registered < registered.size()) registered.at(num_registered++) = wrapper;
  using Register = void** (*)(void*);
  static const auto real = reinterpret_cast<Register>(dlsym(RTLD_NEXT, "__cudaRegisterFatBinary"));
  return real(wrapper);
}

TEST_CASE("A program's variables are found where the CUDA runtime has them", "[gpu]") {
  auto& gpu = the_gpu();
  launch_count();
  const auto kernel = identity_of(static_cast<CUfunction>(count_kernel()));
  REQUIRE(kernel.kind == HandleKind::Kernel);
  bool found = false;
  // A program that is linked from relocatable code registers the parts' fatbins as well.
  for (const void* wrapper : std::span(registered).first(num_registered)) {
    ModuleVariables modules(gpu.driver);
    modules.loaded(kernel.library, wrapper);
    const auto use = modules.of(kernel);
    if (!use->unknown.empty() || use->variables.empty()) continue;
    found = true;
    std::array<KnownVariable, 16> known{};
    const std::size_t count = known_variables(known.data(), known.size());
    for (const KnownVariable& one : std::span(known).first(count)) {
      const VariableRange& range = variable(*use, one.part);
      CHECK(range.bytes == one.bytes);
      // The runtime gives the host's address of managed memory, which is the device's as well.
      CHECK(reinterpret_cast<void*>(range.address) == one.address);
    }
    CHECK(variable(*use, "managed_counter").kind == VariableKind::Managed);
    CHECK(variable(*use, "constant_table").kind == VariableKind::Constant);
    const int before = value_at(variable(*use, "in_kernel"));
    launch_count();
    CHECK(value_at(variable(*use, "in_kernel")) == before + 1);
    CHECK(value_at(variable(*use, "unnamed_counter")) == before + 1);
  }
  CHECK(found);
}

TEST_CASE("Variables of modules and libraries in every form are found", "[gpu]") {
  auto& gpu = the_gpu();
  for (const char* name :
       {"module_variables.cubin", "module_variables.fatbin", "module_variables.ptx"}) {
    INFO(name);
    const std::string code = image(name);
    CUlibrary library = nullptr;
    check(gpu.driver,
          gpu.driver.cuLibraryLoadData(&library, code.c_str(), nullptr, nullptr, 0, nullptr,
                                       nullptr, 0),
          "cuLibraryLoadData");
    CUkernel handle = nullptr;
    check(gpu.driver, gpu.driver.cuLibraryGetKernel(&handle, library, "count"),
          "cuLibraryGetKernel");
    ModuleVariables modules(gpu.driver);
    modules.loaded(library, code.data());
    const auto by_library = modules.of(identity_of(reinterpret_cast<CUfunction>(handle)));
    CHECK(by_library->unknown.empty());
    CHECK(by_library->variables.size() >= 10);

    CUfunction function = nullptr;
    check(gpu.driver, gpu.driver.cuKernelGetFunction(&function, handle), "cuKernelGetFunction");
    // Nobody has said whose it is: its library is the one that has it.
    const auto by_module = modules.of(identity_of(function));
    CHECK(by_module->unknown.empty());
    REQUIRE(by_module->variables.size() == by_library->variables.size());
    for (std::size_t i = 0; i < by_module->variables.size(); ++i) {
      CHECK(by_module->variables[i].address == by_library->variables[i].address);
      CHECK(by_module->variables[i].bytes == by_library->variables[i].bytes);
    }
  }
}
