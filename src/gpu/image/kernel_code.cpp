#include "gpu/image/kernel_code.hpp"

#include <array>

#include <contextune/error.hpp>

#include "gpu/driver/byte_source.hpp"
#include "gpu/driver/device_facts.hpp"
#include "gpu/driver/regular_file.hpp"
#include "gpu/driver/source_build.hpp"
#include "gpu/driver/text_excerpt.hpp"
#include "gpu/image/kernel_identity.hpp"

namespace contextune::gpu {
namespace {

std::string read_image(const std::string& path) {
  std::string content = read_regular_file(path, most_image_bytes);
  if (content.empty()) throw Error(path + ": is empty");
  return content;
}

KernelIdentity any_of(CUlibrary library) {
  KernelIdentity neighbour;
  neighbour.kind = HandleKind::Kernel;
  neighbour.library = library;
  return neighbour;
}

}  // namespace

CUlibrary KernelCode::load(const std::string& image, const std::string& origin,
                           const std::string& ptx) const {
  if (driver_.cuLibraryLoadData == nullptr) {
    throw Error(origin +
                ": the driver is too old to load it; install driver 550 (CUDA 12.4) or later");
  }
  const RelaxedCapture relaxed(driver_);
  std::array<char, 8192> log{};
  std::array<CUjit_option, 2> options{CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  std::array<void*, 2> values{log.data(), reinterpret_cast<void*>(log.size() - 1)};
  CUlibrary library = nullptr;
  // std::string ends in a zero, as PTX must.
  const CUresult result = driver_.cuLibraryLoadData(&library, image.c_str(), options.data(),
                                                    values.data(), 2, nullptr, nullptr, 0);
  if (result != CUDA_SUCCESS) {
    throw Error(origin + ": cannot be loaded for this device: " + describe(driver_, result) +
                text_excerpt(log.data()));
  }
  if (images_ != nullptr) images_->loaded(library, image.c_str(), ptx);
  return library;
}

CUfunction KernelCode::find(CUlibrary library, std::string_view name,
                            const std::string& origin) const {
  const KernelIdentity neighbour = any_of(library);
  const std::vector<std::string> names = function_names(driver_, neighbour);
  if (name.empty() && names.size() != 1) {
    throw Error(origin + ": has " + std::to_string(names.size()) +
                " kernels; say which one to use (`function`)");
  }
  CUfunction function = find_function(driver_, neighbour, name.empty() ? names.front() : name);
  if (function != nullptr) return function;
  std::string known;
  for (const std::string& other : names) known += (known.empty() ? "" : ", ") + other;
  throw Error(origin + ": has no kernel " + std::string(name) + "; it has " +
              (known.empty() ? "none" : known));
}

CUfunction KernelCode::from_file(const std::string& path, std::string_view name) {
  const std::lock_guard lock(mutex_);
  auto known = files_.find(path);
  if (known == files_.end()) known = files_.emplace(path, load(read_image(path), path)).first;
  return find(known->second, name, path);
}

CUfunction KernelCode::from_source(const std::string& path, const std::vector<std::string>& options,
                                   const std::string& name_expression) {
  if (driver_.simulated) {
    throw Error(path + ": the simulated driver cannot run code that NVRTC builds");
  }
  const auto device = current_device(driver_);
  if (!device) throw Error(path + ": cannot be built: no CUDA context is current on this thread");
  const int compute_capability = device_facts(driver_, *device).compute_capability;

  const std::lock_guard lock(mutex_);
  std::vector<std::string> key{path, name_expression, std::to_string(compute_capability)};
  key.insert(key.end(), options.begin(), options.end());
  if (const auto known = builds_.find(key); known != builds_.end()) return known->second;
  const CompiledSource compiled =
      build_source(path, options, name_expression, compute_capability, environment_);
  CUfunction function = find(load(compiled.image, path, compiled.ptx), compiled.symbol, path);
  builds_.emplace(std::move(key), function);
  return function;
}

}  // namespace contextune::gpu
