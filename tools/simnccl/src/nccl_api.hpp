#pragma once
// nccl.h with every function visible, and how one is defined.

#pragma GCC visibility push(default)
#include <nccl.h>
#pragma GCC visibility pop

/// Defines pncclX; ncclX is a weak alias at the same address, as in the real library.
#define SIMNCCL_FUNCTION(RESULT, NAME, PARAMETERS)                          \
  extern "C" __attribute__((weak, alias("p" #NAME), visibility("default"))) \
  RESULT NAME PARAMETERS;                                                   \
  extern "C" __attribute__((visibility("default"))) RESULT p##NAME PARAMETERS
