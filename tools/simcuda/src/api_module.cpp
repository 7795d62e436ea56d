#include "modules.hpp"

using namespace simcuda;

namespace {

CUresult load(CUmodule* module, const std::shared_ptr<const ModuleImage>& image) {
  *module = reinterpret_cast<CUmodule>(make_module(current_context(), image, nullptr));
  return CUDA_SUCCESS;
}

CUresult load_data(CUmodule* module, const void* image) {
  require(module != nullptr);
  (void)current_context();
  return load(module, image_at(image));
}

Module& module_at(CUmodule handle) {
  return driver().handles.get<Module>(handle);
}

}  // namespace

SIMCUDA_ENTRY(cuModuleLoad, (CUmodule * module, const char* fname), {
  require(module != nullptr && fname != nullptr);
  (void)current_context();
  return load(module, ModuleImage::read(fname));
})
SIMCUDA_ENTRY(cuModuleLoadData, (CUmodule * module, const void* image),
              { return load_data(module, image); })
SIMCUDA_ENTRY(cuModuleLoadDataEx,
              (CUmodule * module, const void* image, unsigned int, CUjit_option*, void**),
              { return load_data(module, image); })
SIMCUDA_ENTRY(cuModuleLoadFatBinary, (CUmodule * module, const void* fatCubin),
              { return load_data(module, fatCubin); })

SIMCUDA_ENTRY(cuModuleUnload, (CUmodule hmod), {
  Module& module = module_at(hmod);
  require(module.library == nullptr, CUDA_ERROR_INVALID_HANDLE);
  driver().pending.finish_all(module.context, lock);
  destroy_module(&module);
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuModuleGetLoadingMode, (CUmoduleLoadingMode * mode), {
  require(mode != nullptr);
  *mode = CU_MODULE_EAGER_LOADING;
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuModuleGetFunction, (CUfunction * hfunc, CUmodule hmod, const char* name), {
  require(hfunc != nullptr);
  const Module& module = module_at(hmod);
  *hfunc = reinterpret_cast<CUfunction>(module.functions[index_of(*module.image, name)]);
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuModuleGetFunctionCount, (unsigned int* count, CUmodule mod), {
  require(count != nullptr);
  *count = static_cast<unsigned>(module_at(mod).functions.size());
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuModuleEnumerateFunctions,
              (CUfunction * functions, unsigned int numFunctions, CUmodule mod), {
                require(functions != nullptr);
                const Module& module = module_at(mod);
                require(numFunctions <= module.functions.size());
                for (unsigned i = 0; i < numFunctions; ++i)
                  functions[i] = reinterpret_cast<CUfunction>(module.functions[i]);
                return CUDA_SUCCESS;
              })

SIMCUDA_ENTRY(cuModuleGetGlobal_v2,
              (CUdeviceptr * dptr, size_t* bytes, CUmodule hmod, const char* name), {
                const Memory::Block& global = global_of(module_at(hmod), name);
                if (dptr != nullptr) *dptr = global.begin;
                if (bytes != nullptr) *bytes = global.bytes;
                return CUDA_SUCCESS;
              })
