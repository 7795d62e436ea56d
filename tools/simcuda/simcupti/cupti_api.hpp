#pragma once
// CUPTI's headers, with the entry points visible, and the names of the records that this version
// of CUPTI writes.

#pragma GCC visibility push(default)
#include <cupti.h>
#pragma GCC visibility pop

namespace simcupti {

#if CUPTI_API_VERSION >= 130000
using KernelRecord = CUpti_ActivityKernel10;
using CopyRecord = CUpti_ActivityMemcpy6;
#else
using KernelRecord = CUpti_ActivityKernel9;
using CopyRecord = CUpti_ActivityMemcpy5;
#endif
using SetRecord = CUpti_ActivityMemset4;

}  // namespace simcupti
