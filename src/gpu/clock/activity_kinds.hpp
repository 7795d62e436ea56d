#pragma once

#include <cstddef>

#include <cupti.h>

namespace contextune::gpu {

// CUPTI appends fields to its records from version to version. All versions since CUDA 9 begin
// alike. Only that beginning is read, so that one build reads the records of any of them.
using KernelRecord = CUpti_ActivityKernel9;
using CopyRecord = CUpti_ActivityMemcpy5;
using PeerCopyRecord = CUpti_ActivityMemcpyPtoP4;
using MemsetRecord = CUpti_ActivityMemset4;

static_assert(offsetof(KernelRecord, start) == offsetof(CUpti_ActivityKernel4, start));
static_assert(offsetof(KernelRecord, end) == offsetof(CUpti_ActivityKernel4, end));
static_assert(offsetof(KernelRecord, correlationId) ==
              offsetof(CUpti_ActivityKernel4, correlationId));
#if CUPTI_API_VERSION >= 130000
static_assert(offsetof(KernelRecord, correlationId) ==
              offsetof(CUpti_ActivityKernel10, correlationId));
static_assert(offsetof(KernelRecord, end) == offsetof(CUpti_ActivityKernel10, end));
static_assert(offsetof(KernelRecord, name) == offsetof(CUpti_ActivityKernel10, name));
static_assert(offsetof(KernelRecord, graphNodeId) == offsetof(CUpti_ActivityKernel10, graphNodeId));
static_assert(offsetof(CopyRecord, correlationId) ==
              offsetof(CUpti_ActivityMemcpy6, correlationId));
static_assert(offsetof(CopyRecord, end) == offsetof(CUpti_ActivityMemcpy6, end));
#endif

/// Whether a call puts work on the GPU; by CUPTI's number of the call.
[[nodiscard]] bool driver_call_makes_work(CUpti_CallbackId call) noexcept;
[[nodiscard]] bool runtime_call_makes_work(CUpti_CallbackId call) noexcept;

/// Whether a call makes or launches a CUDA graph; `kind` is that of its record.
[[nodiscard]] bool is_graph_call(CUpti_ActivityKind kind, CUpti_CallbackId call) noexcept;

}  // namespace contextune::gpu
