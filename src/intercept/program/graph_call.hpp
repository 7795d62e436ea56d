#pragma once

#include <cuda.h>

#include "preload/contextune_abi.h"

namespace contextune::intercept {

/// A launch of an instantiated graph, as the program makes it.
struct GraphCall {
  contextune_fn fn{};
  CUgraphExec exec = nullptr;
  CUstream given_stream = nullptr;
  CUstream stream = nullptr;  ///< never null: default streams by their special handles

  GraphCall(contextune_fn entry, CUgraphExec graph, CUstream on) noexcept
      : fn(entry), exec(graph), given_stream(on), stream(on) {
    if (stream != nullptr) return;
    stream = fn == contextune_fn_cuGraphLaunch_ptsz ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
  }
};

}  // namespace contextune::intercept
