#pragma once

#include <optional>
#include <string>

#include <cupti.h>

#include "gpu/driver/driver.hpp"

namespace contextune::gpu {

/// The entry points of CUPTI's activity API, under the names of cupti.h: none of them routed
/// through the frontend, which watches the program's own use of them. A value.
struct CuptiLibrary {
// clang-format off
#define CONTEXTUNE_CUPTI_REQUIRED(X)                                                          \
  X(cuptiActivityRegisterCallbacks) X(cuptiActivityEnable) X(cuptiActivityDisable)            \
  X(cuptiActivityFlushAll) X(cuptiActivityGetNextRecord) X(cuptiActivityGetNumDroppedRecords) \
  X(cuptiGetTimestamp) X(cuptiGetResultString) X(cuptiFinalize)
#define CONTEXTUNE_CUPTI_OPTIONAL(X)                                                          \
  X(cuptiActivitySetAttribute) X(cuptiActivityEnableDriverApi)                                \
  X(cuptiActivityEnableRuntimeApi) X(cuptiGetVersion)
// clang-format on
// NOLINTNEXTLINE(bugprone-macro-parentheses): a name
#define CONTEXTUNE_CUPTI_MEMBER(name) decltype(&::name) name = nullptr;
  CONTEXTUNE_CUPTI_REQUIRED(CONTEXTUNE_CUPTI_MEMBER)
  CONTEXTUNE_CUPTI_OPTIONAL(CONTEXTUNE_CUPTI_MEMBER)
#undef CONTEXTUNE_CUPTI_MEMBER

  std::string path;  ///< where it came from, for messages

  /// "CUPTI_ERROR_NOT_INITIALIZED"
  [[nodiscard]] std::string describe(CUptiResult result) const;
};

/// Opens CUPTI: a copy that is loaded already, else on the loader's path, else of the toolkit, else
/// of the pip package beside a loaded CUDA library. With a simulated driver, only the CUPTI in its
/// folder is opened. Opening makes no CUPTI call and costs half a millisecond. Empty: there is
/// none, and `why` says in a sentence what to do.
[[nodiscard]] std::optional<CuptiLibrary> open_cupti(const Driver& driver, std::string& why);

/// The name of a tool in this process that uses CUPTI or takes its place (Nsight Systems, Nsight
/// Compute, compute-sanitizer, an injected profiler); empty if there is none. CUPTI has one user a
/// process: everybody else gets CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED.
[[nodiscard]] std::string profiler_in_process();

}  // namespace contextune::gpu
