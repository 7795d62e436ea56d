#include "intercept/memory/memory_hooks.hpp"

#include <algorithm>
#include <array>

#include "gpu/driver/driver.hpp"
#include "intercept/host/entry_form.hpp"
#include "intercept/host/hook_arguments.hpp"

namespace contextune::intercept {
namespace {

/// The device and context that are current: what a call without a stream works in.
Allocation here(const gpu::Driver& driver, AllocationKind kind) noexcept {
  Allocation allocation;
  allocation.kind = kind;
  CUdevice device = -1;
  (void)driver.cuCtxGetCurrent(&allocation.context);
  if (driver.cuCtxGetDevice(&device) == CUDA_SUCCESS) allocation.device = device;
  return allocation;
}

Allocation at(Allocation allocation, CUdeviceptr begin, std::size_t bytes) noexcept {
  allocation.begin = begin;
  allocation.bytes = bytes;
  return allocation;
}

CUdeviceptr address_of(const void* pointer) noexcept {
  return reinterpret_cast<CUdeviceptr>(pointer);
}

/// Where memory really is whose kind the entry point does not tell: pools and variables may be
/// managed, and pools may be the host's.
void place(const gpu::Driver& driver, Allocation& allocation) noexcept {
  if (driver.cuPointerGetAttributes == nullptr) return;
  int device = -1;
  unsigned type = 0;
  unsigned managed = 0;
  std::array attributes{CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                        CU_POINTER_ATTRIBUTE_IS_MANAGED};
  std::array<void*, 3> values{&device, &type, &managed};
  if (driver.cuPointerGetAttributes(attributes.size(), attributes.data(), values.data(),
                                    allocation.begin) != CUDA_SUCCESS) {
    return;
  }
  if (managed != 0) {
    allocation.kind = AllocationKind::Managed;
  } else if (type == CU_MEMORYTYPE_HOST) {
    allocation.kind = AllocationKind::Host;
    allocation.device = -1;
  }
  if (type == CU_MEMORYTYPE_DEVICE && device >= 0) allocation.device = device;
}

bool is_capturing(const gpu::Driver& driver, CUstream stream) noexcept {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  // The legacy stream answers with an error while another captures; it cannot be captured itself.
  return driver.cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

void note_pool(ProcessMemory& memory, const gpu::Driver& driver, void* const* args,
               CUstream stream) noexcept {
  if (is_capturing(driver, stream)) {
    return memory.changes().give_up("a graph of the program has memory of its own");
  }
  Allocation allocation = here(driver, AllocationKind::Pool);
  allocation.context = nullptr;
  allocation = at(allocation, *argument<CUdeviceptr*>(args, 0), argument<std::size_t>(args, 1));
  place(driver, allocation);
  memory.allocations().add(allocation);
}

/// Memory of others, whose size only the driver knows.
void note_import(ProcessMemory& memory, const gpu::Driver& driver, void* const* args) noexcept {
  const CUdeviceptr begin = *argument<CUdeviceptr*>(args, 0);
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  if (driver.cuMemGetAddressRange == nullptr ||
      driver.cuMemGetAddressRange(&base, &bytes, begin) != CUDA_SUCCESS) {
    return memory.changes().give_up("the size of memory that the program imported is not known");
  }
  memory.allocations().add(at(here(driver, AllocationKind::Imported), begin, base + bytes - begin));
}

void note_host(ProcessMemory& memory, const gpu::Driver& driver, void* begin,
               std::size_t bytes) noexcept {
  Allocation allocation = at(here(driver, AllocationKind::Host), address_of(begin), bytes);
  allocation.device = -1;
  memory.allocations().add(allocation);
}

/// @param ask the same question without a place for the answer left out; null: cannot be asked
template <typename Owner, typename Ask>
void note_variable(ProcessMemory& memory, const gpu::Driver& driver, void* const* args,
                   Ask ask) noexcept {
  const auto* begin = argument<const CUdeviceptr*>(args, 0);
  const auto* bytes = argument<const std::size_t*>(args, 1);
  if (begin == nullptr) return;  // the program asked for the size only
  const auto owner = argument<Owner>(args, 2);
  std::size_t size = bytes != nullptr ? *bytes : 0;
  CUdeviceptr again = 0;
  if (bytes == nullptr && (ask == nullptr || ask(&again, &size, owner,
                                                 argument<const char*>(args, 3)) != CUDA_SUCCESS)) {
    return memory.changes().give_up("the size of a variable of the program is not known");
  }
  Allocation allocation = at(here(driver, AllocationKind::Global), *begin, size);
  place(driver, allocation);
  memory.allocations().add_variable(allocation, owner);
}

int device_of(const CUmemLocation& location) noexcept {
  return location.type == CU_MEM_LOCATION_TYPE_DEVICE ? location.id : -1;
}

void note_imported_handle(ProcessMemory& memory, const gpu::Driver& driver,
                          CUmemGenericAllocationHandle handle) noexcept {
  CUmemAllocationProp properties{};
  const bool known =
      driver.cuMemGetAllocationPropertiesFromHandle != nullptr &&
      driver.cuMemGetAllocationPropertiesFromHandle(&properties, handle) == CUDA_SUCCESS;
  memory.allocations().add_handle(handle, known ? device_of(properties.location) : -1, true);
}

void note_access(AllocationMap& map, void* const* args) noexcept {
  const auto* const access = argument<const CUmemAccessDesc*>(args, 2);
  for (std::size_t i = 0; i < argument<std::size_t>(args, 3); ++i) {
    if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) continue;
    map.set_access(argument<CUdeviceptr>(args, 0), argument<std::size_t>(args, 1),
                   access[i].location.id, access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  }
}

template <typename Handle>
void note_array(ProcessMemory& memory, const gpu::Driver& driver, void* const* args,
                bool surface) noexcept {
  memory.arrays().add(*argument<Handle*>(args, 0), here(driver, AllocationKind::Device).context,
                      surface);
}

bool is_surface(const CUDA_ARRAY3D_DESCRIPTOR* description) noexcept {
  return (description->Flags & CUDA_ARRAY3D_SURFACE_LDST) != 0;
}

std::size_t array_bytes(std::size_t width, std::size_t height, std::size_t depth) noexcept {
  constexpr std::size_t largest_element = 16;
  return width * std::max<std::size_t>(height, 1) * std::max<std::size_t>(depth, 1) *
         largest_element;
}

void hide_own_memory(const OwnBytes& own, const gpu::Driver& driver, std::size_t* free,
                     const std::size_t* total) noexcept {
  CUdevice device = 0;
  if (free == nullptr || total == nullptr || !own.any() ||
      driver.cuCtxGetDevice(&device) != CUDA_SUCCESS) {
    return;
  }
  *free = std::min(*free + own.on(device), *total);
}

void note_node(ProcessMemory& memory, const CUgraphNodeParams* params) noexcept {
  if (params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
    memory.changes().give_up("a graph of the program has memory of its own");
  }
}

void note_success(ProcessMemory& memory, const gpu::Driver& driver, contextune_fn fn,
                  void* const* args) noexcept {
  AllocationMap& map = memory.allocations();
  const auto result = [args]() noexcept { return *argument<CUdeviceptr*>(args, 0); };
  switch (legacy_form(fn)) {
    case contextune_fn_cuMemAlloc_v2:
      return map.add(
          at(here(driver, AllocationKind::Device), result(), argument<std::size_t>(args, 1)));
    case contextune_fn_cuMemAllocPitch_v2:
      return map.add(at(here(driver, AllocationKind::Device), result(),
                        *argument<std::size_t*>(args, 1) * argument<std::size_t>(args, 3)));
    case contextune_fn_cuMemAllocManaged:
      return map.add(
          at(here(driver, AllocationKind::Managed), result(), argument<std::size_t>(args, 1)));

    case contextune_fn_cuMemAllocAsync:
      return note_pool(memory, driver, args, stream_meant(fn, argument<CUstream>(args, 2)));
    case contextune_fn_cuMemAllocFromPoolAsync:
      return note_pool(memory, driver, args, stream_meant(fn, argument<CUstream>(args, 3)));
    case contextune_fn_cuMemPoolImportPointer:
    case contextune_fn_cuIpcOpenMemHandle:
    case contextune_fn_cuIpcOpenMemHandle_v2:
      return note_import(memory, driver, args);
    case contextune_fn_cuExternalMemoryGetMappedBuffer:
      return map.add(at(here(driver, AllocationKind::Imported), result(),
                        argument<const CUDA_EXTERNAL_MEMORY_BUFFER_DESC*>(args, 2)->size));
    case contextune_fn_cuMemPoolExportPointer:
    case contextune_fn_cuIpcGetMemHandle:
      return map.set_exported(argument<CUdeviceptr>(args, 1), 1);
    case contextune_fn_cuMemGetHandleForAddressRange:
      return map.set_exported(argument<CUdeviceptr>(args, 1), argument<std::size_t>(args, 2));

    case contextune_fn_cuMemCreate:
      return map.add_handle(*argument<CUmemGenericAllocationHandle*>(args, 0),
                            device_of(argument<const CUmemAllocationProp*>(args, 2)->location),
                            false);
    case contextune_fn_cuMemImportFromShareableHandle:
      return note_imported_handle(memory, driver,
                                  *argument<CUmemGenericAllocationHandle*>(args, 0));
    case contextune_fn_cuMulticastCreate:
      return map.add_handle(*argument<CUmemGenericAllocationHandle*>(args, 0), -1, true);
    case contextune_fn_cuMemRetainAllocationHandle:
      return map.retain_handle(*argument<CUmemGenericAllocationHandle*>(args, 0),
                               address_of(argument<void*>(args, 1)));
    case contextune_fn_cuMemExportToShareableHandle:
      return map.export_handle(argument<CUmemGenericAllocationHandle>(args, 1));
    case contextune_fn_cuMemMap:
      return map.map(argument<CUdeviceptr>(args, 0), argument<std::size_t>(args, 1),
                     argument<CUmemGenericAllocationHandle>(args, 3));
    case contextune_fn_cuMemSetAccess:
      return note_access(map, args);

    case contextune_fn_cuMemAllocHost:
      return note_host(memory, driver, *argument<void**>(args, 0), argument<unsigned>(args, 1));
    case contextune_fn_cuMemAllocHost_v2:
    case contextune_fn_cuMemHostAlloc:
      return note_host(memory, driver, *argument<void**>(args, 0), argument<std::size_t>(args, 1));
    case contextune_fn_cuMemHostRegister:
    case contextune_fn_cuMemHostRegister_v2:
      return note_host(memory, driver, argument<void*>(args, 0), argument<std::size_t>(args, 1));

    case contextune_fn_cuMemGetInfo_v2:
      return hide_own_memory(memory.own_bytes(), driver, argument<std::size_t*>(args, 0),
                             argument<const std::size_t*>(args, 1));

    case contextune_fn_cuModuleGetGlobal_v2:
      return note_variable<CUmodule>(memory, driver, args, driver.cuModuleGetGlobal);
    case contextune_fn_cuLibraryGetGlobal:
      return note_variable<CUlibrary>(memory, driver, args, driver.cuLibraryGetGlobal);
    case contextune_fn_cuLibraryGetManaged:
      return note_variable<CUlibrary>(memory, driver, args, driver.cuLibraryGetManaged);
    case contextune_fn_cuLibraryGetModule:
      return map.add_module(*argument<CUmodule*>(args, 0), argument<CUlibrary>(args, 1));

    case contextune_fn_cuArrayCreate_v2:
      return note_array<CUarray>(memory, driver, args, false);
    case contextune_fn_cuArray3DCreate_v2:
      return note_array<CUarray>(memory, driver, args,
                                 is_surface(argument<const CUDA_ARRAY3D_DESCRIPTOR*>(args, 1)));
    case contextune_fn_cuMipmappedArrayCreate:
      return note_array<CUmipmappedArray>(
          memory, driver, args, is_surface(argument<const CUDA_ARRAY3D_DESCRIPTOR*>(args, 1)));
    case contextune_fn_cuExternalMemoryGetMappedMipmappedArray:
      // Whatever our kernels may do, others may write to it.
      return note_array<CUmipmappedArray>(memory, driver, args, true);
    case contextune_fn_cuArrayDestroy:
      return memory.arrays().remove(argument<CUarray>(args, 0));
    case contextune_fn_cuMipmappedArrayDestroy:
      return memory.arrays().remove(argument<CUmipmappedArray>(args, 0));

    case contextune_fn_cuGraphAddMemAllocNode:
      return memory.changes().give_up("a graph of the program has memory of its own");
    case contextune_fn_cuGraphAddNode:
      return note_node(memory, argument<const CUgraphNodeParams*>(args, 4));
    case contextune_fn_cuGraphAddNode_v2:
      return note_node(memory, argument<const CUgraphNodeParams*>(args, 5));
    case contextune_fn_cuGraphicsMapResources:
      return memory.changes().give_up("the program shares memory with a graphics interface");
    default:
      return;
  }
}

}  // namespace

void memory_call_begins(ProcessMemory& memory, contextune_fn fn, void* const* args) noexcept {
  AllocationMap& map = memory.allocations();
  switch (legacy_form(fn)) {
    case contextune_fn_cuMemFree_v2:
    case contextune_fn_cuMemFreeAsync:
    case contextune_fn_cuIpcCloseMemHandle:
      return map.release(argument<CUdeviceptr>(args, 0));
    case contextune_fn_cuMemFreeHost:
    case contextune_fn_cuMemHostUnregister:
      return map.release(address_of(argument<void*>(args, 0)));
    case contextune_fn_cuMemUnmap:
      return map.unmap(argument<CUdeviceptr>(args, 0), argument<std::size_t>(args, 1));
    case contextune_fn_cuMemRelease:
      return map.release_handle(argument<CUmemGenericAllocationHandle>(args, 0));
    case contextune_fn_cuModuleUnload:
      return map.forget_variables(argument<CUmodule>(args, 0));
    case contextune_fn_cuLibraryUnload:
      return map.forget_variables(argument<CUlibrary>(args, 0));
    case contextune_fn_cuCtxDestroy:
    case contextune_fn_cuCtxDestroy_v2:
    case contextune_fn_cuCtxDetach:
      return memory.forget_context(argument<CUcontext>(args, 0));
    default:
      return;
  }
}

std::optional<std::size_t> memory_taken_by(contextune_fn fn, void* const* args) noexcept {
  switch (legacy_form(fn)) {
    case contextune_fn_cuMemAlloc_v2:
    case contextune_fn_cuMemAllocManaged:
    case contextune_fn_cuMemAllocAsync:
    case contextune_fn_cuMemAllocFromPoolAsync:
    case contextune_fn_cuMemCreate:
      return argument<std::size_t>(args, 1);
    case contextune_fn_cuMemAllocPitch_v2: {
      constexpr std::size_t pitch = 512;
      return (argument<std::size_t>(args, 2) + pitch) * argument<std::size_t>(args, 3);
    }
    case contextune_fn_cuArrayCreate_v2: {
      const auto* shape = argument<const CUDA_ARRAY_DESCRIPTOR*>(args, 1);
      return shape == nullptr ? 0 : array_bytes(shape->Width, shape->Height, 1);
    }
    case contextune_fn_cuArray3DCreate_v2:
    case contextune_fn_cuMipmappedArrayCreate: {
      const auto* shape = argument<const CUDA_ARRAY3D_DESCRIPTOR*>(args, 1);
      return shape == nullptr ? 0 : array_bytes(shape->Width, shape->Height, shape->Depth);
    }
    default:
      return std::nullopt;
  }
}

void note_memory_call(ProcessMemory& memory, const gpu::Driver& driver, contextune_fn fn,
                      void* const* args, CUresult result) noexcept {
  switch (legacy_form(fn)) {
    case contextune_fn_cuMemFree_v2:
    case contextune_fn_cuMemFreeAsync:
    case contextune_fn_cuIpcCloseMemHandle:
    case contextune_fn_cuMemUnmap:
      return memory.allocations().released(argument<CUdeviceptr>(args, 0), result == CUDA_SUCCESS);
    case contextune_fn_cuMemFreeHost:
    case contextune_fn_cuMemHostUnregister:
      return memory.allocations().released(address_of(argument<void*>(args, 0)),
                                           result == CUDA_SUCCESS);
    default:
      if (result == CUDA_SUCCESS) note_success(memory, driver, fn, args);
  }
}

}  // namespace contextune::intercept
