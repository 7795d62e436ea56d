#include "intercept/site/launcher.hpp"

#include <array>

#include "gpu/driver/launch_shape.hpp"

namespace contextune::intercept {
namespace {

template <typename Function>
void resolve(Function& function, const contextune_frontend& frontend, contextune_fn fn) {
  function = reinterpret_cast<Function>(frontend.real(fn));
}

}  // namespace

Launcher::Launcher(const contextune_frontend* frontend) {
  if (frontend == nullptr) return;
  resolve(kernel_[0], *frontend, contextune_fn_cuLaunchKernel);
  resolve(kernel_[1], *frontend, contextune_fn_cuLaunchKernel_ptsz);
  resolve(ex_[0], *frontend, contextune_fn_cuLaunchKernelEx);
  resolve(ex_[1], *frontend, contextune_fn_cuLaunchKernelEx_ptsz);
  resolve(cooperative_[0], *frontend, contextune_fn_cuLaunchCooperativeKernel);
  resolve(cooperative_[1], *frontend, contextune_fn_cuLaunchCooperativeKernel_ptsz);
}

CUresult Launcher::as_written(const contextune_launch& call) const noexcept {
  const bool per_thread = call.fn == contextune_fn_cuLaunchKernel_ptsz ||
                          call.fn == contextune_fn_cuLaunchKernelEx_ptsz ||
                          call.fn == contextune_fn_cuLaunchCooperativeKernel_ptsz;
  switch (call.fn) {
    case contextune_fn_cuLaunchKernelEx:
    case contextune_fn_cuLaunchKernelEx_ptsz:
      if (ex_[per_thread] == nullptr) return CUDA_ERROR_NOT_FOUND;
      return ex_[per_thread](call.config, call.function, call.kernel_params, call.extra);
    case contextune_fn_cuLaunchCooperativeKernel:
    case contextune_fn_cuLaunchCooperativeKernel_ptsz:
      if (cooperative_[per_thread] == nullptr) return CUDA_ERROR_NOT_FOUND;
      return cooperative_[per_thread](call.function, call.grid[0], call.grid[1], call.grid[2],
                                      call.block[0], call.block[1], call.block[2],
                                      call.shared_bytes, call.stream, call.kernel_params);
    default:
      if (kernel_[per_thread] == nullptr) return CUDA_ERROR_NOT_FOUND;
      return kernel_[per_thread](call.function, call.grid[0], call.grid[1], call.grid[2],
                                 call.block[0], call.block[1], call.block[2], call.shared_bytes,
                                 call.stream, call.kernel_params, call.extra);
  }
}

CUresult Launcher::as_variant(const Launch& launch, const Variant& variant) const noexcept {
  return launch.extended || variant.num_attributes != 0 ? extended(launch, variant)
                                                        : plain(launch, variant);
}

CUresult Launcher::plain(const Launch& launch, const Variant& variant) const noexcept {
  const Dim3& grid = variant.grid;
  const Dim3& block = variant.block;
  if (launch.cooperative) {
    return cooperative_[launch.per_thread_streams](
        variant.function, grid[0], grid[1], grid[2], block[0], block[1], block[2],
        variant.shared_bytes, launch.given_stream, launch.kernel_params);
  }
  return kernel_[launch.per_thread_streams](
      variant.function, grid[0], grid[1], grid[2], block[0], block[1], block[2],
      variant.shared_bytes, launch.given_stream, launch.kernel_params, launch.extra);
}

CUresult Launcher::extended(const Launch& launch, const Variant& variant) const noexcept {
  if (ex_[launch.per_thread_streams] == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  constexpr std::size_t most = 64;
  std::array<CUlaunchAttribute, most> attributes;  // not initialised: a launch must stay cheap
  std::size_t num_attributes = 0;
  if (launch.num_attributes + variant.num_attributes + 1U > most) return CUDA_ERROR_NOT_SUPPORTED;
  for (std::uint32_t i = 0; i < launch.num_attributes; ++i) {
    bool replaced = false;
    for (std::uint32_t j = 0; j < variant.num_attributes; ++j) {
      replaced = replaced || variant.attributes[j].id == launch.attributes[i].id;
    }
    if (!replaced) attributes[num_attributes++] = launch.attributes[i];
  }
  for (std::uint32_t j = 0; j < variant.num_attributes; ++j) {
    attributes[num_attributes++] = variant.attributes[j];
  }
  if (launch.cooperative && !launch.extended) {
    attributes[num_attributes] = CUlaunchAttribute{};
    attributes[num_attributes].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attributes[num_attributes++].value.cooperative = 1;
  }
  CUlaunchConfig config{};
  gpu::set_shape(config, variant.grid, variant.block, variant.shared_bytes);
  config.hStream = launch.given_stream;
  config.attrs = attributes.data();
  config.numAttrs = static_cast<unsigned>(num_attributes);
  return ex_[launch.per_thread_streams](&config, variant.function, launch.kernel_params,
                                        launch.extra);
}

}  // namespace contextune::intercept
