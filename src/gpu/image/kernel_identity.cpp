#include "gpu/image/kernel_identity.hpp"

#include <algorithm>

#include "core/value/stable_hash.hpp"
#include "gpu/driver/device_facts.hpp"
#include "gpu/image/kernel_name.hpp"

namespace contextune::gpu {
namespace {

CUkernel as_kernel(CUfunction handle) {
  return reinterpret_cast<CUkernel>(handle);
}

// No kernel has more than 4 KiB of parameters before CUDA 12.1 and 32 KiB since.
constexpr std::size_t max_parameters = 4096;

bool name_of(const Driver& driver, CUfunction handle, HandleKind kind, std::string& symbol) {
  const char* text = nullptr;
  CUresult result = CUDA_ERROR_NOT_SUPPORTED;
  if (kind == HandleKind::Function && driver.cuFuncGetName != nullptr) {
    result = driver.cuFuncGetName(&text, handle);
  } else if (kind == HandleKind::Kernel && driver.cuKernelGetName != nullptr) {
    result = driver.cuKernelGetName(&text, as_kernel(handle));
  }
  if (result != CUDA_SUCCESS || text == nullptr) return false;
  symbol = text;
  return true;
}

void read_parameters(const Driver& driver, KernelIdentity& identity) {
  for (std::size_t i = 0; i < max_parameters; ++i) {
    ArgumentLayout layout;
    CUresult result = CUDA_ERROR_NOT_SUPPORTED;
    if (identity.kind == HandleKind::Function && driver.cuFuncGetParamInfo != nullptr) {
      result =
          driver.cuFuncGetParamInfo(identity.handle, i, &layout.offset_bytes, &layout.size_bytes);
    } else if (identity.kind == HandleKind::Kernel && driver.cuKernelGetParamInfo != nullptr) {
      result = driver.cuKernelGetParamInfo(as_kernel(identity.handle), i, &layout.offset_bytes,
                                           &layout.size_bytes);
    }
    if (result != CUDA_SUCCESS) return;  // CUDA_ERROR_INVALID_VALUE after the last one
    identity.parameters.push_back(layout);
  }
}

int attribute(const Driver& driver, const KernelIdentity& identity, CUfunction_attribute which,
              CUdevice device) {
  int value = 0;
  CUresult result = CUDA_ERROR_NOT_SUPPORTED;
  if (identity.kind == HandleKind::Function) {
    result = driver.cuFuncGetAttribute(&value, which, identity.handle);
  } else if (driver.cuKernelGetAttribute != nullptr) {
    result = driver.cuKernelGetAttribute(&value, which, as_kernel(identity.handle), device);
  }
  return result == CUDA_SUCCESS ? value : 0;
}

void read_attributes(const Driver& driver, KernelIdentity& identity) {
  const CUdevice device = current_device(driver).value_or(0);
  const auto get = [&](CUfunction_attribute which) {
    return attribute(driver, identity, which, device);
  };
  const auto bytes = [&](CUfunction_attribute which) {
    return static_cast<std::size_t>(get(which));
  };
  const auto extent = [&](CUfunction_attribute which) {
    return static_cast<std::uint32_t>(get(which));
  };
  identity.registers = get(CU_FUNC_ATTRIBUTE_NUM_REGS);
  identity.max_threads = get(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  identity.binary_version = get(CU_FUNC_ATTRIBUTE_BINARY_VERSION);
  identity.ptx_version = get(CU_FUNC_ATTRIBUTE_PTX_VERSION);
  identity.static_shared_bytes = bytes(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  identity.local_bytes = bytes(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
  identity.max_dynamic_shared_bytes = bytes(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  identity.required_cluster = {extent(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH),
                               extent(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT),
                               extent(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH)};
  identity.cluster_size_must_be_set = get(CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET) != 0;
}

void find_home(const Driver& driver, KernelIdentity& identity) {
  if (identity.kind == HandleKind::Function) {
    identity.function = identity.handle;
    if (driver.cuFuncGetModule == nullptr ||
        driver.cuFuncGetModule(&identity.module, identity.handle) != CUDA_SUCCESS) {
      identity.module = nullptr;
    }
    return;
  }
  if (driver.cuKernelGetFunction == nullptr ||
      driver.cuKernelGetFunction(&identity.function, as_kernel(identity.handle)) != CUDA_SUCCESS) {
    identity.function = identity.handle;  // launches and occupancy queries take it as well
  }
  if (driver.cuKernelGetLibrary == nullptr ||
      driver.cuKernelGetLibrary(&identity.library, as_kernel(identity.handle)) != CUDA_SUCCESS) {
    identity.library = nullptr;
  }
}

std::uint64_t hash_of(const KernelIdentity& identity) {
  StableHash hash;
  hash.add(identity.symbol);
  // Attributes that the program sets itself, such as the dynamic shared memory limit, are not code.
  for (const std::size_t part : {static_cast<std::size_t>(identity.registers),
                                 static_cast<std::size_t>(identity.max_threads),
                                 static_cast<std::size_t>(identity.binary_version),
                                 static_cast<std::size_t>(identity.ptx_version),
                                 identity.static_shared_bytes, identity.local_bytes}) {
    hash.add(static_cast<std::uint64_t>(part));
  }
  for (const ArgumentLayout& layout : identity.parameters) {
    hash.add(static_cast<std::uint64_t>(layout.offset_bytes));
    hash.add(static_cast<std::uint64_t>(layout.size_bytes));
  }
  return hash.value();
}

/// Calls visit(handle) for every kernel beside `neighbour`, until it answers true.
template <typename Visit>
void for_each_function(const Driver& driver, const KernelIdentity& neighbour, Visit visit) {
  unsigned int count = 0;
  if (neighbour.kind == HandleKind::Function) {
    if (neighbour.module == nullptr || driver.cuModuleGetFunctionCount == nullptr ||
        driver.cuModuleEnumerateFunctions == nullptr ||
        driver.cuModuleGetFunctionCount(&count, neighbour.module) != CUDA_SUCCESS) {
      return;
    }
    std::vector<CUfunction> functions(count);
    if (driver.cuModuleEnumerateFunctions(functions.data(), count, neighbour.module) !=
        CUDA_SUCCESS) {
      return;
    }
    for (CUfunction function : functions) {
      if (visit(function)) return;
    }
    return;
  }
  if (neighbour.library == nullptr || driver.cuLibraryGetKernelCount == nullptr ||
      driver.cuLibraryEnumerateKernels == nullptr ||
      driver.cuLibraryGetKernelCount(&count, neighbour.library) != CUDA_SUCCESS) {
    return;
  }
  std::vector<CUkernel> kernels(count);
  if (driver.cuLibraryEnumerateKernels(kernels.data(), count, neighbour.library) != CUDA_SUCCESS) {
    return;
  }
  for (CUkernel kernel : kernels) {
    if (visit(reinterpret_cast<CUfunction>(kernel))) return;
  }
}

}  // namespace

std::optional<KernelIdentity> identify(const Driver& driver, CUfunction handle, std::string& why) {
  KernelIdentity identity;
  identity.handle = handle;
  if (name_of(driver, handle, HandleKind::Function, identity.symbol)) {
    identity.kind = HandleKind::Function;
  } else if (name_of(driver, handle, HandleKind::Kernel, identity.symbol)) {
    identity.kind = HandleKind::Kernel;
  } else {
    why = driver.cuFuncGetName == nullptr
              ? "the driver cannot name kernels (it is older than CUDA 12.3)"
              : "the driver does not know the kernel handle of this launch";
    return std::nullopt;
  }
  identity.name = demangled_kernel_name(identity.symbol);
  find_home(driver, identity);
  read_parameters(driver, identity);
  read_attributes(driver, identity);
  identity.code_hash = hash_of(identity);
  return identity;
}

int binary_version(const Driver& driver, HandleKind kind, CUfunction handle) {
  const CUdevice device = current_device(driver).value_or(0);
  if (handle == nullptr) return device_facts(driver, device).compute_capability;
  KernelIdentity identity;
  identity.kind = kind;
  identity.handle = handle;
  return attribute(driver, identity, CU_FUNC_ATTRIBUTE_BINARY_VERSION, device);
}

CUfunction find_function(const Driver& driver, const KernelIdentity& neighbour,
                         std::string_view name) {
  const std::string symbol(name);
  if (neighbour.kind == HandleKind::Function && neighbour.module != nullptr) {
    CUfunction function = nullptr;
    if (driver.cuModuleGetFunction(&function, neighbour.module, symbol.c_str()) == CUDA_SUCCESS) {
      return function;
    }
  } else if (neighbour.library != nullptr && driver.cuLibraryGetKernel != nullptr) {
    CUkernel kernel = nullptr;
    if (driver.cuLibraryGetKernel(&kernel, neighbour.library, symbol.c_str()) == CUDA_SUCCESS) {
      return reinterpret_cast<CUfunction>(kernel);
    }
  }
  CUfunction found = nullptr;
  for_each_function(driver, neighbour, [&](CUfunction candidate) {
    std::string other;
    if (name_of(driver, candidate, neighbour.kind, other) &&
        same_kernel_name(demangled_kernel_name(other), name)) {
      found = candidate;
    }
    return found != nullptr;
  });
  return found;
}

std::vector<std::string> function_names(const Driver& driver, const KernelIdentity& neighbour) {
  std::vector<std::string> names;
  for_each_function(driver, neighbour, [&](CUfunction candidate) {
    std::string symbol;
    if (name_of(driver, candidate, neighbour.kind, symbol)) {
      names.push_back(demangled_kernel_name(symbol));
    }
    return false;
  });
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace contextune::gpu
