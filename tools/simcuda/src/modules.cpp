#include "modules.hpp"

#include <algorithm>
#include <cstring>

#include "cubin.hpp"

namespace simcuda {

namespace {

// A __device__ variable: zeros, and not counted among what the program allocated.
std::uintptr_t make_global(const Context& context, std::size_t bytes) {
  const Memory::Block& block = driver().memory.allocate(
      std::max<std::size_t>(bytes, 1), Memory::Kind::global, context.device,
      reinterpret_cast<CUcontext>(const_cast<Context*>(&context)), 0);
  std::memset(reinterpret_cast<void*>(block.begin), 0, block.bytes);
  return block.begin;
}

}  // namespace

Module* make_module(Context& context, std::shared_ptr<const ModuleImage> image, Library* library) {
  Driver& state = driver();
  const DeviceProfile& profile = state.device(context.device).profile;
  auto* const module = state.handles.make<Module>();
  module->context = &context;
  module->library = library;
  module->image = std::move(image);
  for (const KernelCode& code : module->image->kernels) {
    auto* const function = state.handles.make<Function>();
    function->code = &code;
    function->module = module;
    function->attributes = initial_attributes(code, profile);
    module->functions.push_back(function);
  }
  for (const ModuleImage::Global& global : module->image->globals)
    module->globals.emplace(global.name, make_global(context, global.bytes));
  context.modules.insert(module);
  return module;
}

void destroy_module(Module* module) {
  Driver& state = driver();
  for (Function* const function : module->functions) state.handles.destroy(function);
  for (const auto& [name, begin] : module->globals) state.memory.release(begin);
  module->context->modules.erase(module);
  state.handles.destroy(module);
}

Module& module_of(Library& library, Context& context) {
  Module*& module = library.modules[&context];
  if (module == nullptr) module = make_module(context, library.image, &library);
  return *module;
}

std::size_t index_of(const ModuleImage& image, const char* name) {
  require(name != nullptr);
  const auto found =
      std::find_if(image.kernels.begin(), image.kernels.end(),
                   [&](const KernelCode& code) { return std::strcmp(code.name, name) == 0; });
  require(found != image.kernels.end(), CUDA_ERROR_NOT_FOUND);
  return static_cast<std::size_t>(found - image.kernels.begin());
}

const Memory::Block& global_of(const Module& module, const char* name) {
  require(name != nullptr);
  const auto found = module.globals.find(name);
  require(found != module.globals.end(), CUDA_ERROR_NOT_FOUND);
  return *driver().memory.at(found->second);
}

std::shared_ptr<const ModuleImage> image_at(const void* image) {
  require(image != nullptr);
  if (is_fat_binary(image)) image = cubin_in(image);
  const char* const text = static_cast<const char*>(image);
  if (std::strncmp(text,
                   "\x7f"
                   "ELF",
                   4) == 0)
    return ModuleImage::parse(cubin_bytes(image), ".");
  // PTX is for a real GPU.
  require(std::strncmp(text, "simcuda image", 13) == 0, CUDA_ERROR_NO_BINARY_FOR_GPU);
  return ModuleImage::parse(text, ".");
}

int get_attribute(const KernelCode& code, const KernelAttributes& attributes,
                  CUfunction_attribute attribute) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      return static_cast<int>(code.max_threads_per_block);
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      return static_cast<int>(code.source->static_shared_bytes);
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
      return 0;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      return static_cast<int>(code.source->local_bytes);
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      return static_cast<int>(code.registers);
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      return 90;
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
      return 0;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      return attributes.max_dynamic_shared_bytes;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      return attributes.carveout_percent;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
      return 0;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
      return static_cast<int>(attributes.cluster[0]);
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
      return static_cast<int>(attributes.cluster[1]);
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
      return static_cast<int>(attributes.cluster[2]);
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      return attributes.non_portable_cluster;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      return attributes.cluster_scheduling;
    default:
      throw Failure{CUDA_ERROR_INVALID_VALUE};
  }
}

void set_attribute(const KernelCode& code, KernelAttributes& attributes,
                   CUfunction_attribute attribute, int value) {
  const DeviceProfile profile;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      require(value >= 0 && static_cast<std::size_t>(value) + code.source->static_shared_bytes <=
                                profile.shared_per_block_optin_bytes);
      attributes.max_dynamic_shared_bytes = value;
      return;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      require(value >= -1 && value <= 100);
      attributes.carveout_percent = value;
      return;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
      require(value >= 0);
      attributes
          .cluster[static_cast<std::size_t>(attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH)] =
          static_cast<unsigned>(value);
      return;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      attributes.non_portable_cluster = value != 0 ? 1 : 0;
      return;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      require(value >= 0 && value <= 2);
      attributes.cluster_scheduling = value;
      return;
    default:
      throw Failure{CUDA_ERROR_INVALID_VALUE};
  }
}

void get_parameter(const KernelCode& code, std::size_t index, std::size_t* offset,
                   std::size_t* bytes) {
  require(offset != nullptr && index < code.offsets.size());
  *offset = code.offsets[index];
  if (bytes != nullptr) *bytes = code.source->parameters[index].bytes;
}

}  // namespace simcuda
