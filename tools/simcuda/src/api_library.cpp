#include "modules.hpp"

using namespace simcuda;

namespace {

CUresult load(CUlibrary* handle, const std::shared_ptr<const ModuleImage>& image) {
  Driver& state = driver();
  auto* const library = state.handles.make<Library>();
  library->image = image;
  for (std::size_t i = 0; i < image->kernels.size(); ++i) {
    auto* const kernel = state.handles.make<Kernel>();
    kernel->code = &image->kernels[i];
    kernel->library = library;
    kernel->index = i;
    library->kernels.push_back(kernel);
  }
  *handle = reinterpret_cast<CUlibrary>(library);
  return CUDA_SUCCESS;
}

Library& library_at(CUlibrary handle) {
  return driver().handles.get<Library>(handle);
}
Kernel& kernel_at(CUkernel handle) {
  return driver().handles.get<Kernel>(handle);
}

}  // namespace

SIMCUDA_ENTRY(cuLibraryLoadData,
              (CUlibrary * library, const void* code, CUjit_option*, void**, unsigned int,
               CUlibraryOption*, void**, unsigned int),
              {
                require(library != nullptr);
                return load(library, image_at(code));
              })

SIMCUDA_ENTRY(cuLibraryLoadFromFile,
              (CUlibrary * library, const char* fileName, CUjit_option*, void**, unsigned int,
               CUlibraryOption*, void**, unsigned int),
              {
                require(library != nullptr && fileName != nullptr);
                return load(library, ModuleImage::read(fileName));
              })

SIMCUDA_ENTRY(cuLibraryUnload, (CUlibrary handle), {
  Library& library = library_at(handle);
  driver().pending.finish_all(nullptr, lock);
  const auto modules = library.modules;
  for (const auto& [context, module] : modules) destroy_module(module);
  for (Kernel* const kernel : library.kernels) driver().handles.destroy(kernel);
  driver().handles.destroy(&library);
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuLibraryGetKernel, (CUkernel * pKernel, CUlibrary handle, const char* name), {
  require(pKernel != nullptr);
  const Library& library = library_at(handle);
  *pKernel = reinterpret_cast<CUkernel>(library.kernels[index_of(*library.image, name)]);
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuLibraryGetKernelCount, (unsigned int* count, CUlibrary lib), {
  require(count != nullptr);
  *count = static_cast<unsigned>(library_at(lib).kernels.size());
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuLibraryEnumerateKernels,
              (CUkernel * kernels, unsigned int numKernels, CUlibrary lib), {
                require(kernels != nullptr);
                const Library& library = library_at(lib);
                require(numKernels <= library.kernels.size());
                for (unsigned i = 0; i < numKernels; ++i)
                  kernels[i] = reinterpret_cast<CUkernel>(library.kernels[i]);
                return CUDA_SUCCESS;
              })

SIMCUDA_ENTRY(cuLibraryGetModule, (CUmodule * pMod, CUlibrary handle), {
  require(pMod != nullptr);
  *pMod = reinterpret_cast<CUmodule>(&module_of(library_at(handle), current_context()));
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuLibraryGetGlobal,
              (CUdeviceptr * dptr, size_t* bytes, CUlibrary handle, const char* name), {
                const auto& global =
                    global_of(module_of(library_at(handle), current_context()), name);
                if (dptr != nullptr) *dptr = global.begin;
                if (bytes != nullptr) *bytes = global.bytes;
                return CUDA_SUCCESS;
              })

SIMCUDA_ENTRY(cuKernelGetFunction, (CUfunction * pFunc, CUkernel handle), {
  require(pFunc != nullptr);
  const Kernel& kernel = kernel_at(handle);
  const Module& module = module_of(*kernel.library, current_context());
  *pFunc = reinterpret_cast<CUfunction>(module.functions[kernel.index]);
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuKernelGetLibrary, (CUlibrary * pLib, CUkernel handle), {
  require(pLib != nullptr);
  *pLib = reinterpret_cast<CUlibrary>(kernel_at(handle).library);
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuKernelGetAttribute,
              (int* pi, CUfunction_attribute attrib, CUkernel handle, CUdevice dev), {
                require(pi != nullptr);
                Kernel& kernel = kernel_at(handle);
                *pi = get_attribute(*kernel.code, attributes_of(kernel, dev), attrib);
                return CUDA_SUCCESS;
              })

SIMCUDA_ENTRY(cuKernelSetAttribute,
              (CUfunction_attribute attrib, int val, CUkernel handle, CUdevice dev), {
                Kernel& kernel = kernel_at(handle);
                set_attribute(*kernel.code, attributes_of(kernel, dev), attrib, val);
                return CUDA_SUCCESS;
              })

SIMCUDA_ENTRY(cuKernelSetCacheConfig, (CUkernel handle, CUfunc_cache config, CUdevice dev), {
  attributes_of(kernel_at(handle), dev).cache_preference = config;
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuKernelGetName, (const char** name, CUkernel handle), {
  require(name != nullptr);
  *name = kernel_at(handle).code->name;
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuKernelGetParamInfo,
              (CUkernel handle, size_t paramIndex, size_t* paramOffset, size_t* paramSize), {
                get_parameter(*kernel_at(handle).code, paramIndex, paramOffset, paramSize);
                return CUDA_SUCCESS;
              })
