#include "records.hpp"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmath>
#include <cstring>

namespace simcupti {

namespace {

std::uint64_t time_of_day() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

template <class Raw>
Record as_record(const Raw& raw, double complete) {
  static_assert(sizeof(Raw) <= Record::capacity && sizeof(Raw) % 8 == 0);
  Record record;
  std::memcpy(record.bytes.data(), &raw, sizeof raw);
  record.size = sizeof raw;
  record.complete = complete;
  return record;
}

}  // namespace

std::uint64_t timestamp(double seconds) {
  static const std::uint64_t origin = time_of_day();
  return origin + static_cast<std::uint64_t>(std::llround(seconds * 1e9));
}

/// What records of work have in common.
template <class Raw>
void take_common(Raw& raw, const simcuda_activity& activity) {
  raw.start = timestamp(activity.start);
  raw.end = timestamp(activity.end);
  raw.deviceId = activity.device;
  raw.contextId = activity.context;
  raw.streamId = activity.stream;
  raw.correlationId = activity.correlation;
  raw.graphNodeId = activity.graph_node;
  raw.graphId = activity.graph;
}

Record kernel_record(const simcuda_activity& activity, bool concurrent) {
  KernelRecord raw{};
  raw.kind = concurrent ? CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL : CUPTI_ACTIVITY_KIND_KERNEL;
  raw.registersPerThread = static_cast<std::uint16_t>(activity.registers);
  take_common(raw, activity);
  raw.completed = raw.end;
  raw.gridX = static_cast<std::int32_t>(activity.launch.grid[0]);
  raw.gridY = static_cast<std::int32_t>(activity.launch.grid[1]);
  raw.gridZ = static_cast<std::int32_t>(activity.launch.grid[2]);
  raw.blockX = static_cast<std::int32_t>(activity.launch.block[0]);
  raw.blockY = static_cast<std::int32_t>(activity.launch.block[1]);
  raw.blockZ = static_cast<std::int32_t>(activity.launch.block[2]);
  raw.staticSharedMemory = static_cast<std::int32_t>(activity.static_shared_bytes);
  raw.dynamicSharedMemory = static_cast<std::int32_t>(activity.launch.dynamic_shared_bytes);
  raw.localMemoryPerThread = activity.local_bytes;
  raw.gridId = static_cast<std::int64_t>(activity.correlation);
  raw.name = activity.name;
  raw.launchType = static_cast<std::uint8_t>(
      activity.cooperative != 0 ? CUPTI_ACTIVITY_LAUNCH_TYPE_COOPERATIVE_SINGLE_DEVICE
                                : CUPTI_ACTIVITY_LAUNCH_TYPE_REGULAR);
  raw.sharedMemoryExecuted = activity.executed_shared_bytes;
  raw.clusterX = activity.launch.cluster[0];
  raw.clusterY = activity.launch.cluster[1];
  raw.clusterZ = activity.launch.cluster[2];
  return as_record(raw, activity.end);
}

Record copy_record(const simcuda_activity& activity) {
  CopyRecord raw{};
  raw.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  raw.copyKind = static_cast<std::uint8_t>(activity.copy_kind);
  raw.srcKind = static_cast<std::uint8_t>(activity.source_kind);
  raw.dstKind = static_cast<std::uint8_t>(activity.destination_kind);
  raw.bytes = activity.bytes;
  take_common(raw, activity);
  return as_record(raw, activity.end);
}

Record set_record(const simcuda_activity& activity) {
  SetRecord raw{};
  raw.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  raw.value = activity.value;
  raw.bytes = activity.bytes;
  take_common(raw, activity);
  raw.memoryKind = static_cast<std::uint16_t>(activity.destination_kind);
  return as_record(raw, activity.end);
}

Record correlation_record(CUpti_ExternalCorrelationKind kind, std::uint64_t id,
                          std::uint32_t correlation, double complete) {
  CUpti_ActivityExternalCorrelation raw{};
  raw.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
  raw.externalKind = kind;
  raw.externalId = id;
  raw.correlationId = correlation;
  return as_record(raw, complete);
}

Record api_record(std::uint32_t cbid, double start, double end, std::uint32_t correlation,
                  std::uint32_t result) {
  CUpti_ActivityAPI raw{};
  raw.kind = CUPTI_ACTIVITY_KIND_DRIVER;
  raw.cbid = cbid;
  raw.start = timestamp(start);
  raw.end = timestamp(end);
  raw.processId = static_cast<std::uint32_t>(getpid());
  raw.threadId = static_cast<std::uint32_t>(syscall(SYS_gettid));
  raw.correlationId = correlation;
  raw.returnValue = result;
  return as_record(raw, end);
}

std::size_t size_of(const CUpti_Activity* record) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return sizeof(KernelRecord);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizeof(CopyRecord);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return sizeof(SetRecord);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
      return sizeof(CUpti_ActivityExternalCorrelation);
    case CUPTI_ACTIVITY_KIND_DRIVER:
      return sizeof(CUpti_ActivityAPI);
    default:
      return 0;
  }
}

}  // namespace simcupti
