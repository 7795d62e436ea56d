#pragma once

#include <cuda.h>

namespace contextune::intercept {

/// Whether an attribute that the author of a launch set leaves the order between launches alone.
/// Then the launch may be chained, and followed by a chained one. Such an attribute says nothing,
/// or how blocks of the launch itself are grouped. Any other may end, begin or signal something
/// early.
[[nodiscard]] inline bool leaves_order(const CUlaunchAttribute& attribute) noexcept {
  switch (attribute.id) {
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      return true;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
      return attribute.value.programmaticStreamSerializationAllowed == 0;
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
      return attribute.value.cooperative == 0;
    default:
      return false;
  }
}

}  // namespace contextune::intercept
