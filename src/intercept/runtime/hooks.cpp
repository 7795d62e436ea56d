#include "intercept/runtime/hooks.hpp"

#include "gpu/driver/process_exit.hpp"
#include "intercept/host/entry_form.hpp"
#include "intercept/host/guarded.hpp"
#include "intercept/host/hook_arguments.hpp"
#include "intercept/memory/memory_hooks.hpp"
#include "intercept/program/code_load.hpp"
#include "intercept/program/replay_gate.hpp"
#include "intercept/recording/recorder.hpp"
#include "intercept/regions/tunable_launch.hpp"
#include "intercept/runtime/collective_hooks.hpp"
#include "intercept/runtime/process_runtime.hpp"

namespace contextune::intercept {
namespace {

constinit const contextune_frontend* attached = nullptr;

CUresult on_launch(const contextune_launch* call) noexcept {
  if (ProcessRuntime* runtime = running_runtime()) return runtime->launches().launch(*call);
  return Launcher(attached).as_written(*call);
}

CUresult on_graph_launch(contextune_fn fn, CUgraphExec exec, CUstream stream) noexcept {
  const GraphCall call(fn, exec, stream);
  if (ProcessRuntime* runtime = running_runtime()) return runtime->launches().launch_graph(call);
  return reinterpret_cast<decltype(&cuGraphLaunch)>(attached->real(fn))(exec, stream);
}

CUstream capture_stream(contextune_fn fn, void* const* args) noexcept {
  return stream_meant(fn, argument<CUstream>(args, 0));
}

void on_before(contextune_fn fn, void* const* args) noexcept {
  ProcessRuntime* runtime = running_runtime();
  if (runtime == nullptr) return;
  runtime->services().gate.pass();
  memory_call_begins(runtime->services().memory, fn, args);
  if (const auto bytes = memory_taken_by(fn, args))
    runtime->services().recorder.memory_wanted(*bytes);
  if (TunableCall* call = this_thread().call) TunableLaunch::transfer_begins(*call, fn, args);
  switch (legacy_form(fn)) {
    case contextune_fn_cuModuleUnload:
      runtime->services().variables.unloads(argument<CUmodule>(args, 0));
      runtime->submission().loads().unloads(argument<CUmodule>(args, 0));
      return runtime->submission().forget_kernels();
    case contextune_fn_cuLibraryUnload:
      runtime->services().variables.unloads(argument<CUlibrary>(args, 0));
      runtime->submission().loads().unloads(argument<CUlibrary>(args, 0));
      return runtime->submission().forget_kernels();
    case contextune_fn_cuStreamBeginCapture:
    case contextune_fn_cuStreamBeginCapture_v2:
    case contextune_fn_cuStreamBeginCaptureToGraph:
      return runtime->services().captures.begin(capture_stream(fn, args));
    case contextune_fn_cuGraphExecDestroy:
      runtime->services().recorder.obstruct(FallbackReason::ReplayAllocation,
                                            "The region destroys a graph.", true);
      return runtime->services().graphs.destroyed(argument<CUgraphExec>(args, 0));
    case contextune_fn_cuTexObjectDestroy:
    case contextune_fn_cuSurfObjectDestroy:
      return runtime->services().recorder.obstruct(
          FallbackReason::ReplayAllocation, "The region destroys a texture or surface object.",
          true);
    case contextune_fn_cuStreamDestroy:
    case contextune_fn_cuStreamDestroy_v2:
      return runtime->handles().stream_goes_away(argument<CUstream>(args, 0));
    case contextune_fn_cuCtxDestroy:
    case contextune_fn_cuCtxDestroy_v2:
    case contextune_fn_cuCtxDetach:
      return runtime->handles().context_goes_away(argument<CUcontext>(args, 0));
    case contextune_fn_cuGreenCtxDestroy:
      return runtime->handles().context_goes_away(nullptr);
    case contextune_fn_cuDevicePrimaryCtxReset:
    case contextune_fn_cuDevicePrimaryCtxReset_v2:
      return runtime->handles().primary_context_goes_away(argument<CUdevice>(args, 0));
    default:
      return;
  }
}

/// Notes attributes that the program sets on its own kernels.
void on_attribute_set(ProcessRuntime& runtime, contextune_fn fn, void* const* args) noexcept {
  constexpr auto carveout = CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
  ProgramAttributes& program = runtime.services().attributes;
  runtime.submission().submitter().forget_shapes();
  try {
    if (fn == contextune_fn_cuFuncSetAttribute) {
      program.set(argument<CUfunction>(args, 0), argument<CUfunction_attribute>(args, 1));
    } else if (fn == contextune_fn_cuKernelSetAttribute) {
      program.set(argument<CUkernel>(args, 2), argument<CUfunction_attribute>(args, 0));
    } else {
      // A cache configuration is a carve-out by another name.
      program.set(argument<const void*>(args, 0), carveout);
    }
  } catch (...) {
    // No memory to remember it.
  }
}

/// Code that the program loaded, and handles that it got of it; nothing else.
void on_load(gpu::ModuleVariables& variables, contextune_fn fn, void* const* args) noexcept {
  switch (fn) {
    case contextune_fn_cuModuleLoad:
      return variables.loaded_from_file(*argument<CUmodule*>(args, 0),
                                        argument<const char*>(args, 1));
    case contextune_fn_cuLibraryLoadFromFile:
      return variables.loaded_from_file(*argument<CUlibrary*>(args, 0),
                                        argument<const char*>(args, 1));
    case contextune_fn_cuLibraryLoadData:
      return variables.loaded(*argument<CUlibrary*>(args, 0), argument<const void*>(args, 1));
    case contextune_fn_cuLibraryGetModule:
      return variables.belongs(*argument<CUmodule*>(args, 0), argument<CUlibrary>(args, 1));
    case contextune_fn_cuKernelGetFunction:
      return variables.belongs(*argument<CUfunction*>(args, 0), argument<CUkernel>(args, 1));
    case contextune_fn_cuModuleGetFunction:
      return variables.used(argument<CUmodule>(args, 1), *argument<CUfunction*>(args, 0));
    case contextune_fn_cuModuleEnumerateFunctions:
      if (argument<unsigned int>(args, 1) == 0) return;
      return variables.used(argument<CUmodule>(args, 2), *argument<CUfunction*>(args, 0));
    case contextune_fn_cuModuleGetGlobal_v2:
      return variables.used(argument<CUmodule>(args, 2), nullptr);
    case contextune_fn_cuLibraryGetKernel:
      return variables.used(argument<CUlibrary>(args, 1), *argument<CUkernel*>(args, 0));
    case contextune_fn_cuLibraryEnumerateKernels:
      if (argument<unsigned int>(args, 1) == 0) return;
      return variables.used(argument<CUlibrary>(args, 2), *argument<CUkernel*>(args, 0));
    case contextune_fn_cuLibraryGetGlobal:
      return variables.used(argument<CUlibrary>(args, 2), nullptr);
    case contextune_fn_cuModuleLoadData:
    case contextune_fn_cuModuleLoadDataEx:
    case contextune_fn_cuModuleLoadFatBinary:
      return variables.loaded(*argument<CUmodule*>(args, 0), argument<const void*>(args, 1));
    default:
      return;
  }
}

void on_after_success(ProcessRuntime& runtime, contextune_fn fn, void* const* args) noexcept {
  switch (legacy_form(fn)) {
    case contextune_fn_cuFuncSetAttribute:
    case contextune_fn_cuKernelSetAttribute:
    case contextune_fn_cuFuncSetCacheConfig:
    case contextune_fn_cuKernelSetCacheConfig:
      return on_attribute_set(runtime, fn, args);
    case contextune_fn_cuStreamSetAttribute:
    case contextune_fn_cuStreamCopyAttributes:
      return runtime.submission().submitter().forget_stream();
    case contextune_fn_cuDevicePrimaryCtxRelease:
    case contextune_fn_cuDevicePrimaryCtxRelease_v2:
      return runtime.handles().primary_context_released(argument<CUdevice>(args, 0));
    case contextune_fn_cuCtxCreate:
    case contextune_fn_cuCtxCreate_v2:
      return runtime.services().contexts.made(*argument<CUcontext*>(args, 0),
                                              argument<CUdevice>(args, 2));
    case contextune_fn_cuCtxCreate_v3:
      return runtime.services().contexts.made(*argument<CUcontext*>(args, 0),
                                              argument<CUdevice>(args, 4));
    case contextune_fn_cuCtxCreate_v4:
      return runtime.services().contexts.made(*argument<CUcontext*>(args, 0),
                                              argument<CUdevice>(args, 3));
    case contextune_fn_cuDevicePrimaryCtxRetain:
      return runtime.services().contexts.holds_primary(*argument<CUcontext*>(args, 0),
                                                       argument<CUdevice>(args, 1));
    case contextune_fn_cuStreamSynchronize:
    case contextune_fn_cuEventSynchronize:
    case contextune_fn_cuCtxSynchronize:
    case contextune_fn_cuCtxSynchronize_v2:
      return runtime.synchronised();
    case contextune_fn_cuMemcpyDtoH_v2:
      return runtime.regions().work_was_waited_for();
    case contextune_fn_cuGraphInstantiate:
    case contextune_fn_cuGraphInstantiate_v2:
    case contextune_fn_cuGraphInstantiateWithFlags:
    case contextune_fn_cuGraphInstantiateWithParams:
      runtime.timers().note_graph();
      return runtime.services().graphs.instantiated(fn, args);
    case contextune_fn_cuGraphExecKernelNodeSetParams:
    case contextune_fn_cuGraphExecKernelNodeSetParams_v2:
    case contextune_fn_cuGraphExecNodeSetParams:
    case contextune_fn_cuGraphExecUpdate:
    case contextune_fn_cuGraphExecUpdate_v2:
    case contextune_fn_cuGraphExecMemcpyNodeSetParams:
    case contextune_fn_cuGraphExecMemsetNodeSetParams:
    case contextune_fn_cuGraphExecHostNodeSetParams:
    case contextune_fn_cuGraphExecChildGraphNodeSetParams:
    case contextune_fn_cuGraphExecEventRecordNodeSetEvent:
    case contextune_fn_cuGraphExecEventWaitNodeSetEvent:
    case contextune_fn_cuGraphExecExternalSemaphoresSignalNodeSetParams:
    case contextune_fn_cuGraphExecExternalSemaphoresWaitNodeSetParams:
    case contextune_fn_cuGraphExecBatchMemOpNodeSetParams:
    case contextune_fn_cuGraphNodeSetEnabled:
      runtime.services().recorder.obstruct(FallbackReason::GraphUnreplayable,
                                           "The region changes a graph.");
      return runtime.submission().graphs().changed(fn, args);
    case contextune_fn_cuIpcOpenEventHandle:
      return runtime.services().recorder.event_imported(*argument<CUevent*>(args, 0));
    case contextune_fn_cuGraphUpload:
      runtime.timers().note_graph();
      return runtime.submission().graphs().uploaded(fn, args);
    case contextune_fn_cuLaunch:
    case contextune_fn_cuLaunchGrid:
    case contextune_fn_cuLaunchGridAsync:
    case contextune_fn_cuLaunchCooperativeKernelMultiDevice:
      return runtime.launches().unsupported(attached->name(fn));
    default:
      return on_load(runtime.services().variables, fn, args);
  }
}

void on_after(contextune_fn fn, void* const* args, CUresult result) noexcept {
  ProcessRuntime* runtime = running_runtime();
  if (runtime == nullptr) return;
  if (is_sticky_error(result)) runtime->services().broke(result);
  runtime->services().recorder.after(fn, args, result);
  if (TunableCall* call = this_thread().call)
    TunableLaunch::transfer_ended(*call, fn, args, result == CUDA_SUCCESS);
  note_memory_call(runtime->services().memory, runtime->services().driver, fn, args, result);
  switch (legacy_form(fn)) {
    case contextune_fn_cuProfilerStart:
      return runtime->regions().profiler(true);
    case contextune_fn_cuProfilerStop:
      return runtime->regions().profiler(false);
    case contextune_fn_cuStreamBeginCapture:
    case contextune_fn_cuStreamBeginCapture_v2:
    case contextune_fn_cuStreamBeginCaptureToGraph:
      if (result != CUDA_SUCCESS)
        return runtime->services().captures.failed(capture_stream(fn, args));
      return runtime->services().captures.begun(capture_stream(fn, args));
    case contextune_fn_cuStreamEndCapture:
      // An end on the wrong thread does not end it.
      if (result != CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD) {
        runtime->services().captures.end(capture_stream(fn, args));
      }
      return;
    case contextune_fn_cuGraphExecUpdate:
    case contextune_fn_cuGraphExecUpdate_v2:
      // It may have been changed in part.
      if (result != CUDA_SUCCESS)
        return runtime->submission().graphs().update_failed(argument<CUgraphExec>(args, 0));
      break;
    default:
      break;
  }
  if (result == CUDA_SUCCESS) on_after_success(*runtime, fn, args);
}

void on_after_unguarded(contextune_fn fn, void* const* args, CUresult result) noexcept {
  // NCCL asks for its kernel's function at each launch.
  if (fn == contextune_fn_cuKernelGetFunction && result == CUDA_SUCCESS) {
    ProcessRuntime* runtime = running_runtime();
    if (runtime == nullptr || runtime->services().variables.is_known(
                                  *argument<CUfunction*>(args, 0), argument<CUkernel>(args, 1)))
      return;
  }
  Guarded<on_after>::call(fn, args, result);
}

void on_range(contextune_range_kind kind, const char* domain, const char* name,
              std::uint64_t id) noexcept {
  if (ProcessRuntime* runtime = running_runtime()) runtime->regions().range(kind, domain, name, id);
}

void on_program_uses_cupti(contextune_fn fn) noexcept {
  if (ProcessRuntime* runtime = running_runtime()) {
    runtime->program_uses_cupti(attached->name(fn));
  }
}

void on_exiting() noexcept {
  gpu::begin_exit();
}

void on_hand_over(contextune_fn fn) noexcept {
  if (ProcessRuntime* runtime = running_runtime()) runtime->submission().hand_over(fn);
}

CUresult on_code_load(contextune_fn fn, void* const* args) noexcept {
  const auto load = [](contextune_fn with, void* const* arguments) {
    return load_code(*attached, with, arguments);
  };
  ProcessRuntime* runtime = running_runtime();
  return runtime == nullptr ? load(fn, args) : runtime->submission().loads().load(fn, args, load);
}

// Those that are not guarded look first whether there is anything to be done.
constexpr contextune_core table{CONTEXTUNE_ABI_VERSION,
                                sizeof(contextune_core),
                                on_launch,
                                guarded<on_before>,
                                on_after_unguarded,
                                on_range,
                                guarded<on_program_uses_cupti>,
                                guarded<on_graph_launch>,
                                on_nccl_before,
                                on_nccl_after,
                                on_tuner_begin,
                                on_tuner_decide,
                                on_tuner_end,
                                guarded<on_exiting>,
                                guarded<on_hand_over>,
                                guarded<on_code_load>};

}  // namespace

const contextune_core* hook_table() noexcept {
  return &table;
}

void set_hook_frontend(const contextune_frontend* frontend) noexcept {
  attached = frontend;
  hot_words.thread_word.store(frontend == nullptr ? nullptr : frontend->thread,
                              std::memory_order_release);
}

}  // namespace contextune::intercept
