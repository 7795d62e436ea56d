#include "api/region/snapshot.hpp"

#include <cuda.h>

#include <cstdio>
#include <limits>
#include <map>
#include <string>

#include <contextune/error.hpp>

#include "gpu/memory/block_store.hpp"
#include "intercept/program/idle_wait.hpp"

namespace contextune::api {
namespace {

// Far more than copying all of a device's memory takes: a GPU that needs longer is stuck.
constexpr double max_copy_seconds = 60;

std::string describe(const Snapshot::Span& span) {
  char text[64];
  std::snprintf(text, sizeof text, "%p (%zu bytes)", span.pointer, span.size_bytes);
  return text;
}

CUcontext context_of(const gpu::Driver& driver, const Snapshot::Span& span) {
  CUcontext context = nullptr;
  if (driver.cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT,
                                   reinterpret_cast<CUdeviceptr>(span.pointer)) != CUDA_SUCCESS) {
    throw Error("the memory to be restored at " + describe(span) +
                " is not device memory; name device memory, or give `restore` as a callable");
  }
  // Memory of a pool belongs to no context.
  if (context == nullptr) driver.cuCtxGetCurrent(&context);
  return context;
}

// A copy of more than is allocated would be an illegal access where a kernel makes it. Memory whose
// extent the driver does not know is taken as it is.
void require_allocated(const gpu::Driver& driver, const Snapshot::Span& span) {
  if (driver.cuMemGetAddressRange == nullptr) return;
  const auto begin = reinterpret_cast<CUdeviceptr>(span.pointer);
  CUdeviceptr at = begin;
  while (at - begin < span.size_bytes) {
    CUdeviceptr base = 0;
    std::size_t bytes = 0;
    if (driver.cuMemGetAddressRange(&base, &bytes, at) != CUDA_SUCCESS || base + bytes <= at) break;
    at = base + bytes;
  }
  if (at == begin || at - begin >= span.size_bytes) return;
  throw Error("the memory to be restored at " + describe(span) + " goes " +
              std::to_string(span.size_bytes - (at - begin)) +
              " bytes past the end of what is allocated there; give its size in bytes");
}

// The body may use any stream, so nothing less than the whole context has to be complete. It was
// idle before the body first ran, and what a pass did is waited for, with a deadline, at its end.
void complete_work(const gpu::Driver& driver, CUcontext context) {
  const gpu::CurrentContext current(driver, context);
  check(driver, driver.cuCtxSynchronize(), "completing the work on memory to be restored");
}

}  // namespace

/// The part of a snapshot that belongs to one context.
struct Snapshot::InContext {
  CUcontext context;
  gpu::BlockStore store;
};

Snapshot::Snapshot(const gpu::Driver& driver, const std::vector<Span>& spans, double seconds)
    : driver_(driver), kernels_(driver) {
  const gpu::RelaxedCapture relaxed(driver);
  std::map<CUcontext, std::vector<gpu::MemoryRange>> ranges;
  for (const Span& span : spans) {
    if (span.size_bytes == 0) continue;
    CUcontext const context = context_of(driver, span);
    require_allocated(driver, span);
    ranges[context].push_back({reinterpret_cast<CUdeviceptr>(span.pointer), span.size_bytes});
  }
  for (auto& [context, of_context] : ranges) {
    const gpu::Footprint footprint(std::move(of_context));
    if (std::string why; !intercept::wait_until_idle(driver, context, seconds, why))
      throw Error("memory to be restored cannot be copied while the GPU is at work: " + why);
    // On the device that they belong to, wherever that has room.
    const gpu::BlockStore::Limits limits{std::numeric_limits<std::size_t>::max(), 0};
    // NOLINTNEXTLINE(modernize-make-unique): an aggregate
    contexts_.emplace_back(new InContext{context, {driver, context, kernels_, limits}});
    contexts_.back()->store.save(footprint, gpu::Deadline::in(max_copy_seconds));
  }
}

Snapshot::~Snapshot() = default;

void Snapshot::restore() {
  const gpu::RelaxedCapture relaxed(driver_);
  for (const auto& one : contexts_) complete_work(driver_, one->context);
  for (const auto& one : contexts_) one->store.restore(gpu::Deadline::in(max_copy_seconds));
}

}  // namespace contextune::api
