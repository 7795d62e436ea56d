#pragma once

#include <cuda.h>

#include <memory>
#include <optional>
#include <vector>

#include "communicator.hpp"
#include "reduction.hpp"

namespace simnccl {

/// What a rank multiplies its own input with before it is added to those of the others.
struct Scale {
  Scalar value{};
  const void* on_device = nullptr;  // where the value is when the collective runs; null: `value`
};

/// A collective as the program asked for it.
struct Collective {
  int function = all_reduce;
  const void* send = nullptr;
  void* receive = nullptr;
  std::size_t count = 0;  // elements, as in the call
  ncclDataType_t type = ncclFloat32;
  ncclRedOp_t op = ncclSum;
  int root = 0;
  CUstream stream = nullptr;
  std::optional<Scale> scale;
};

/// As the tuner counts it: the larger of what one rank sends and receives.
[[nodiscard]] std::size_t bytes_of_collective(const Collective& one, int ranks);

/// Puts collectives that are done as one on a stream: the bin of a group. Returns at once; the work
/// is over when all ranks have come with the same bin and the same decision, else never.
/// @throws Error
void enqueue_collectives(const std::shared_ptr<Communicator>& comm,
                         const std::vector<Collective>& bin, const Decision& decision,
                         CUstream stream);

}  // namespace simnccl
