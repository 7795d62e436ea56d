#include "gpu/image/module_variables.hpp"

#include <algorithm>
#include <exception>

#include "gpu/image/program_file.hpp"

namespace contextune::gpu {
namespace {

std::shared_ptr<const ModuleUse> unknown_use(std::string why) {
  const auto use = std::make_shared<ModuleUse>();
  use->unknown = std::move(why);
  return use;
}

/// Made at the start, as it is for when there is no memory.
const std::shared_ptr<const ModuleUse> no_memory =
    unknown_use("there is no memory left to find out");

}  // namespace

template <typename Make>
void ModuleVariables::remember(Handle handle, bool is_module, const void* code,
                               Make make) noexcept {
  try {
    Loaded loaded;
    // Seldom asked about, while the load may be what the program waits for.
    loaded.lasting = code == nullptr ? nullptr : fat_binary_of_program(code);
    if (loaded.lasting == nullptr) loaded.image = make();
    if (is_module && driver_.cuCtxGetCurrent(&loaded.context) != CUDA_SUCCESS) {
      loaded.context = nullptr;
    }
    const std::lock_guard lock(mutex_);
    ++changes_;
    loaded_[handle] = std::move(loaded);
  } catch (const std::exception&) {
    // Without memory to remember it, it is one that was not seen.
    forget(handle);
  }
}

void ModuleVariables::loaded(CUmodule module, const void* code) noexcept {
  remember(module, true, code, [&] { return LoadedImage::from_memory(code); });
}

void ModuleVariables::loaded(CUlibrary library, const void* code, const std::string& ptx) noexcept {
  remember(library, false, code, [&] { return LoadedImage::from_memory(code, ptx); });
}

void ModuleVariables::loaded_from_file(CUmodule module, const char* path) noexcept {
  remember(module, true, nullptr, [&] { return LoadedImage::from_file(path, driver_.simulated); });
}

void ModuleVariables::loaded_from_file(CUlibrary library, const char* path) noexcept {
  remember(library, false, nullptr,
           [&] { return LoadedImage::from_file(path, driver_.simulated); });
}

void ModuleVariables::belongs(CUmodule module, CUlibrary library) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    libraries_[module] = library;
  } catch (const std::exception&) {
    // Its kernels will be unknown.
  }
}

void ModuleVariables::belongs(CUfunction function, CUkernel kernel) noexcept {
  if (is_known(function, kernel)) return;
  CUlibrary library = nullptr;
  if (driver_.cuKernelGetLibrary == nullptr ||
      driver_.cuKernelGetLibrary(&library, kernel) != CUDA_SUCCESS) {
    return;
  }
  try {
    const std::lock_guard lock(mutex_);
    function_libraries_[function] = library;
    last_of(function).store(both(function, kernel), std::memory_order_relaxed);
  } catch (const std::exception&) {
    // The kernel will be unknown.
  }
}

void ModuleVariables::used(CUmodule module, CUfunction kernel) noexcept {
  note_use(module, true, kernel);
}

void ModuleVariables::used(CUlibrary library, CUkernel kernel) noexcept {
  note_use(library, false, reinterpret_cast<CUfunction>(kernel));
}

void ModuleVariables::note_use(Handle handle, bool is_module, CUfunction kernel) noexcept {
  CUcontext context = nullptr;
  if (is_module && driver_.cuCtxGetCurrent(&context) != CUDA_SUCCESS) context = nullptr;
  const std::lock_guard lock(mutex_);
  try {
    const auto [place, fresh] = used_.try_emplace(handle);
    Used& used = place->second;
    if (used.kernel == nullptr) used.kernel = kernel;
    if (!fresh) return;
    used.is_module = is_module;
    const auto loaded = loaded_.find(handle);
    used.context = loaded == loaded_.end() ? context : loaded->second.context;
  } catch (const std::exception&) {
    lost_ = true;
  }
}

void ModuleVariables::forget(Handle handle) noexcept {
  const std::lock_guard lock(mutex_);
  ++changes_;
  used_.erase(handle);
  loaded_.erase(handle);
  std::erase_if(answers_, [&](const auto& one) { return one.first.first == handle; });
}

void ModuleVariables::unloads(CUmodule module) noexcept {
  forget(module);
}

void ModuleVariables::unloads(CUlibrary library) noexcept {
  forget(library);
  const std::lock_guard lock(mutex_);
  const auto of_library = [&](const auto& one) { return one.second == library; };
  std::erase_if(libraries_, [&](const auto& one) {
    if (!of_library(one)) return false;
    std::erase_if(answers_, [&](const auto& answer) { return answer.first.first == one.first; });
    used_.erase(one.first);
    return true;
  });
  std::erase_if(function_libraries_, of_library);
  for (auto& last : last_of_function_) last.store(0, std::memory_order_relaxed);
}

void ModuleVariables::context_goes_away(CUcontext context) noexcept {
  const std::lock_guard lock(mutex_);
  ++changes_;
  answers_.clear();
  // Its modules and functions go, too, and their handles are made again for others.
  libraries_.clear();
  function_libraries_.clear();
  for (auto& last : last_of_function_) last.store(0, std::memory_order_relaxed);
  const auto goes_along = [&](const auto& one) {
    const CUcontext home = one.second.context;
    return home != nullptr && (context == nullptr || home == context);
  };
  std::erase_if(loaded_, goes_along);
  std::erase_if(used_, goes_along);
}

std::shared_ptr<const ModuleUse> ModuleVariables::of(const KernelIdentity& kernel) noexcept {
  const Handle handle = kernel.kind == HandleKind::Function ? static_cast<Handle>(kernel.module)
                                                            : static_cast<Handle>(kernel.library);
  CUcontext context = nullptr;
  try {
    if (handle == nullptr)
      return unknown_use("the driver does not tell what the kernel was loaded with");
    if (driver_.cuCtxGetCurrent(&context) != CUDA_SUCCESS || context == nullptr) {
      return unknown_use("no CUDA context is current");
    }
    std::uint64_t changes = 0;
    {
      const std::lock_guard lock(mutex_);
      const auto known = answers_.find({handle, context});
      if (known != answers_.end()) return known->second;
      changes = changes_;
    }
    auto answer = std::make_shared<const ModuleUse>(find_out(kernel));
    const std::lock_guard lock(mutex_);
    // An unknown answer for a function may become known: its library is seen later.
    if (changes == changes_ && answer->unknown.empty()) answers_[{handle, context}] = answer;
    return answer;
  } catch (const std::exception&) {
    return no_memory;
  }
}

std::vector<ModuleVariables::UsedModule> ModuleVariables::of_used() noexcept {
  std::vector<UsedModule> uses;
  try {
    std::map<Handle, Used> used;
    bool lost = false;
    {
      const std::lock_guard lock(mutex_);
      used = used_;
      lost = lost_;
    }
    if (lost) uses.push_back({nullptr, no_memory});
    for (const auto& [handle, one] : used) uses.push_back({handle, of_used(handle, one)});
  } catch (const std::exception&) {
    uses.assign({{nullptr, no_memory}});
  }
  return uses;
}

std::shared_ptr<const ModuleUse> ModuleVariables::of_used(Handle handle, const Used& used) {
  CUcontext here = nullptr;
  if (driver_.cuCtxGetCurrent(&here) != CUDA_SUCCESS) here = nullptr;
  const CUcontext home = used.context == nullptr ? here : used.context;
  const CurrentContext current(driver_, home);
  std::shared_ptr<const ModuleUse> use;
  {
    const std::lock_guard lock(mutex_);
    const auto known = answers_.find({handle, home});
    if (known != answers_.end()) use = known->second;
  }
  if (use == nullptr) {
    KernelIdentity kernel;
    kernel.kind = used.is_module ? HandleKind::Function : HandleKind::Kernel;
    kernel.handle = kernel.function = used.kernel;
    auto* const address = const_cast<void*>(handle);
    if (used.is_module) kernel.module = static_cast<CUmodule>(address);
    if (!used.is_module) kernel.library = static_cast<CUlibrary>(address);
    kernel.binary_version = binary_version(driver_, kernel.kind, used.kernel);
    use = of(kernel);
  }
  const bool has_memory = std::any_of(
      use->variables.begin(), use->variables.end(),
      [](const VariableRange& variable) { return variable.kind != VariableKind::Constant; });
  if (home == here || !use->unknown.empty() || !has_memory) return use;
  return unknown_use("a module of another context has variables");
}

CUlibrary ModuleVariables::library_of(const KernelIdentity& kernel) {
  if (driver_.cuLibraryGetKernel == nullptr || driver_.cuKernelGetFunction == nullptr) {
    return nullptr;
  }
  std::vector<CUlibrary> libraries;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [handle, loaded] : loaded_) {
      if (loaded.context != nullptr) continue;
      libraries.push_back(reinterpret_cast<CUlibrary>(const_cast<void*>(handle)));
    }
  }
  for (CUlibrary library : libraries) {
    CUkernel other = nullptr;
    CUfunction function = nullptr;
    if (driver_.cuLibraryGetKernel(&other, library, kernel.symbol.c_str()) == CUDA_SUCCESS &&
        driver_.cuKernelGetFunction(&function, other) == CUDA_SUCCESS &&
        function == kernel.function) {
      return library;
    }
  }
  return nullptr;
}

ModuleVariables::Handle ModuleVariables::known_owner(const KernelIdentity& kernel) {
  Handle handle = kernel.library;
  if (kernel.kind == HandleKind::Function) {
    handle = kernel.module;
    const auto by_module = libraries_.find(kernel.module);
    const auto by_function = function_libraries_.find(kernel.function);
    if (!loaded_.contains(handle)) {
      if (by_module != libraries_.end()) {
        handle = by_module->second;
      } else if (by_function != function_libraries_.end()) {
        handle = by_function->second;
        libraries_[kernel.module] = by_function->second;
      }
    }
  }
  return loaded_.contains(handle) ? handle : nullptr;
}

const void* ModuleVariables::owner_of(const KernelIdentity& kernel) noexcept {
  try {
    {
      const std::lock_guard lock(mutex_);
      if (const Handle owner = known_owner(kernel)) return owner;
    }
    return kernel.kind == HandleKind::Function ? library_of(kernel) : nullptr;
  } catch (const std::exception&) {
    return nullptr;  // no memory
  }
}

std::shared_ptr<LoadedImage> ModuleVariables::image_of(const KernelIdentity& kernel) {
  const void* lasting = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto known = loaded_.find(known_owner(kernel));
    if (known == loaded_.end()) return nullptr;
    if (known->second.image != nullptr) return known->second.image;
    lasting = known->second.lasting;
  }
  // Without the lock: the loader is asked, which may be loading code of the program's on another
  // thread, and that comes here.
  std::shared_ptr<LoadedImage> image = LoadedImage::from_memory(lasting);
  const std::lock_guard lock(mutex_);
  const auto known = loaded_.find(known_owner(kernel));
  if (known == loaded_.end() || known->second.lasting != lasting) return image;
  if (known->second.image == nullptr) known->second.image = image;
  return known->second.image;
}

CUresult ModuleVariables::find(const KernelIdentity& kernel, const char* name,
                               VariableRange& range) const noexcept {
  if (kernel.kind == HandleKind::Function) {
    return driver_.cuModuleGetGlobal == nullptr
               ? CUDA_ERROR_NOT_SUPPORTED
               : driver_.cuModuleGetGlobal(&range.address, &range.bytes, kernel.module, name);
  }
  return driver_.cuLibraryGetGlobal == nullptr
             ? CUDA_ERROR_NOT_SUPPORTED
             : driver_.cuLibraryGetGlobal(&range.address, &range.bytes, kernel.library, name);
}

ModuleUse ModuleVariables::find_out(const KernelIdentity& kernel) {
  ModuleUse use;
  std::shared_ptr<LoadedImage> loaded = image_of(kernel);
  if (loaded == nullptr && kernel.kind == HandleKind::Function) {
    // A graph's node names the function of a kernel that the program launched as a kernel.
    if (CUlibrary library = library_of(kernel)) {
      belongs(kernel.module, library);
      loaded = image_of(kernel);
    }
  }
  if (loaded == nullptr) {
    use.unknown = "the load of the kernel's module was not seen";
    return use;
  }
  std::string why;
  const auto image = loaded->read(kernel.binary_version, why);
  if (image == nullptr) {
    use.unknown = "the image that the kernel was loaded from is not known: " + why;
    return use;
  }
  use.uses_printf = image->uses_printf;
  use.uses_malloc = image->uses_malloc;
  use.launches_kernels = image->launches_kernels;
  const RelaxedCapture relaxed(driver_);
  for (const ImageVariable& variable : image->variables) {
    VariableRange range;
    range.kind = variable.kind;
    range.name = variable.name;
    const CUresult result = find(kernel, variable.name.c_str(), range);
    if (result == CUDA_ERROR_NOT_FOUND && !variable.certain) continue;
    if (result != CUDA_SUCCESS) {
      use.unknown = "the driver does not find the variable " + variable.name + ": " +
                    describe(driver_, result);
      use.variables.clear();
      return use;
    }
    use.variables.push_back(std::move(range));
  }
  return use;
}

}  // namespace contextune::gpu
