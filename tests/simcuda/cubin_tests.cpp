// Images of machine code in place of the text form.
#include <simcuda/cubin.hpp>

#include <cstring>
#include <fstream>
#include <string>

#include "session.hpp"

namespace {

using simcuda::CompiledKernel;
using simcuda::Instruction;

CUresult load(const std::string& image) {
  CUmodule module = nullptr;
  const CUresult result = cuModuleLoadData(&module, image.data());
  if (result == CUDA_SUCCESS) SUCCEEDS(cuModuleUnload(module));
  return result;
}

/// The image of one kernel, in whose code an instruction is replaced.
std::string with(const Instruction& instruction, std::size_t index,
                 const CompiledKernel& kernel = {"empty"}) {
  std::string image = simcuda::build_cubin({kernel});
  const auto& first = simcuda::instruction::load_stack_pointer;
  const std::size_t code =
      image.find(std::string(reinterpret_cast<const char*>(&first), sizeof first));
  REQUIRE(code != std::string::npos);
  std::memcpy(image.data() + code + index * sizeof instruction, &instruction, sizeof instruction);
  return image;
}

/// A branch by so many instructions from the one behind it.
Instruction branch(std::int64_t instructions) {
  const std::int64_t words = instructions * 4;
  const auto bits = static_cast<std::uint64_t>(words);
  const std::uint64_t sign = words < 0 ? 0x3ffff : 0;
  return {0x7947 | (bits & 0xff) << 16 | bits >> 8 << 34, 0x000fea0003800000 | sign};
}

void check_fill(const Session& session, CUfunction fill, CUdeviceptr x, float value) {
  int n = 16;
  CUdeviceptr out = x;
  SUCCEEDS(session.launch(fill, 1, 32, {&n, &out, &value}));
  CHECK(session.floats(x, 16) == std::vector<float>(16, value));
}

}  // namespace

TEST_CASE("A cubin's kernels are the registered ones of its names, however it is loaded",
          "[cubin]") {
  Session session;
  const CUdeviceptr x = session.memory(64);
  const std::string image = simcuda::build_cubin({{"fill"}, {"gemm<64, 64>"}});
  CUmodule module = nullptr;
  CUfunction fill = nullptr;
  SUCCEEDS(cuModuleLoadData(&module, image.data()));
  SUCCEEDS(cuModuleGetFunction(&fill, module, "fill"));
  check_fill(session, fill, x, 1);
  int registers = 0;
  SUCCEEDS(cuModuleGetFunction(&fill, module, "gemm<64, 64>"));
  SUCCEEDS(cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, fill));
  CHECK(registers == 128);
  CHECK(cuModuleGetFunction(&fill, module, "add") == CUDA_ERROR_NOT_FOUND);
  SUCCEEDS(cuModuleUnload(module));

  const std::string path = "simcuda_cubin_tests.cubin";
  std::ofstream(path, std::ios::binary) << image;
  SUCCEEDS(cuModuleLoad(&module, path.c_str()));
  SUCCEEDS(cuModuleGetFunction(&fill, module, "fill"));
  check_fill(session, fill, x, 2);
  SUCCEEDS(cuModuleUnload(module));

  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  SUCCEEDS(cuLibraryLoadData(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  SUCCEEDS(cuLibraryGetKernel(&kernel, library, "fill"));
  check_fill(session, reinterpret_cast<CUfunction>(kernel), x, 3);
  SUCCEEDS(cuLibraryUnload(library));

  const std::string fat = simcuda::build_fat_binary(image);
  simcuda::FatBinaryWrapper wrapper;
  wrapper.fat_binary = fat.data();
  for (const void* const form :
       {static_cast<const void*>(fat.data()), static_cast<const void*>(&wrapper)}) {
    SUCCEEDS(cuModuleLoadFatBinary(&module, form));
    SUCCEEDS(cuModuleGetFunction(&fill, module, "fill"));
    check_fill(session, fill, x, 4);
    SUCCEEDS(cuModuleUnload(module));
  }
}

TEST_CASE("A cubin may carry a text that says where its kernels are and has its variables",
          "[cubin]") {
  const Session session;
  const std::string image =
      simcuda::build_cubin({{"saxpy"}, {"count"}},
                           "simcuda image 1\nglobal counter 16\nlibrary " SIMCUDA_TEST_KERNEL_FILE);
  CUmodule module = nullptr;
  SUCCEEDS(cuModuleLoadData(&module, image.data()));
  CUfunction function = nullptr;
  SUCCEEDS(cuModuleGetFunction(&function, module, "saxpy"));
  SUCCEEDS(cuModuleGetFunction(&function, module, "count"));
  int five = 5;
  SUCCEEDS(session.launch(function, 1, 1, {&five}));
  CUdeviceptr counter = 0;
  std::size_t bytes = 0;
  SUCCEEDS(cuModuleGetGlobal_v2(&counter, &bytes, module, "counter"));
  CHECK(bytes == 16);
  int counted = 0;
  SUCCEEDS(cuMemcpyDtoH_v2(&counted, counter, sizeof counted));
  CHECK(counted == 5);
  SUCCEEDS(cuModuleUnload(module));
}

TEST_CASE("A cubin with kernels that nobody has registered is for a real GPU", "[cubin]") {
  const Session session;
  CHECK(load(simcuda::build_cubin({{"fill"}, {"nobody"}})) == CUDA_ERROR_NO_BINARY_FOR_GPU);
  std::string other = simcuda::build_cubin({{"fill"}});
  other[18] = 62;  // code for a CPU
  CHECK(load(other) == CUDA_ERROR_NO_BINARY_FOR_GPU);
  other[4] = 1;  // of 32 bits
  CHECK(load(other) == CUDA_ERROR_NO_BINARY_FOR_GPU);
}

TEST_CASE("Code that would run astray is refused", "[cubin]") {
  const Session session;
  namespace instruction = simcuda::instruction;
  // LDC R1, the work, EXIT, a branch to itself and four times NOP.
  SUCCEEDS(load(with(instruction::load_stack_pointer, 0)));
  SUCCEEDS(load(with(instruction::wait, 0)));
  CHECK(load(with(instruction::work, 0)) == CUDA_ERROR_INVALID_IMAGE);
  CHECK(load(with({}, 0)) == CUDA_ERROR_INVALID_IMAGE);
  // The entry led on to the second instruction, round in a circle, past the second, and outside.
  SUCCEEDS(load(with(branch(0), 0)));
  CHECK(load(with(branch(-1), 0)) == CUDA_ERROR_INVALID_IMAGE);
  CHECK(load(with(branch(1), 0)) == CUDA_ERROR_INVALID_IMAGE);
  CHECK(load(with(branch(3), 0)) == CUDA_ERROR_INVALID_IMAGE);  // through NOPs to the end
  CHECK(load(with(branch(7), 0)) == CUDA_ERROR_INVALID_IMAGE);
  CHECK(load(with(branch(-2), 0)) == CUDA_ERROR_INVALID_IMAGE);
  CHECK(load(with(branch(100'000'000), 0)) == CUDA_ERROR_INVALID_IMAGE);
  // Elsewhere in the code.
  SUCCEEDS(load(with(branch(-4), 3)));
  CHECK(load(with(branch(-5), 3)) == CUDA_ERROR_INVALID_IMAGE);
  Instruction between = branch(0);
  between.low |= 0x10000;
  CHECK(load(with(between, 1)) == CUDA_ERROR_INVALID_IMAGE);
  // A kernel that moves its stack pointer has to have one.
  const CompiledKernel stack{.name = "empty", .uses_stack = true};
  SUCCEEDS(load(with(instruction::load_stack_pointer, 0, stack)));
  CHECK(load(with(instruction::wait, 0, stack)) == CUDA_ERROR_INVALID_IMAGE);
  const Instruction store{0x0000000201007387, 0x000fe20000100800};  // STL [R1], R2
  std::string image = with(store, 1);
  SUCCEEDS(load(image));
  const auto& first = instruction::load_stack_pointer;
  image.replace(image.find(std::string(reinterpret_cast<const char*>(&first), sizeof first)),
                sizeof first, reinterpret_cast<const char*>(&instruction::wait), sizeof first);
  CHECK(load(image) == CUDA_ERROR_INVALID_IMAGE);
}

TEST_CASE("A cubin that is cut off in a file is refused", "[cubin]") {
  const Session session;
  const std::string image = simcuda::build_cubin({{"empty"}, {"fill"}});
  const std::string path = "simcuda_cut_cubin_tests.cubin";
  for (std::size_t bytes = 4; bytes < image.size(); bytes += 61) {
    std::ofstream(path, std::ios::binary) << image.substr(0, bytes);
    CUmodule module = nullptr;
    CHECK(cuModuleLoad(&module, path.c_str()) == CUDA_ERROR_INVALID_IMAGE);
  }
}
