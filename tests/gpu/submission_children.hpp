// Work that the device itself launches. It stands in an image of its own, since of no kernel beside
// it can be told whether it launches.
#pragma once

#include <cuda_runtime.h>

enum class Child { Waits, Tail, ForgetsIt, Graph, Count };
inline constexpr const char* child_names[] = {"child", "child_in_tail", "child_forgotten",
                                              "child_graph"};

/// A kernel that launches another one, which counts what in `in` is not of this round, and writes
/// `round` into `out`.
void launch_parent(Child child, cudaStream_t stream, const unsigned* in, unsigned* out,
                   unsigned long long* wrong, unsigned round);
