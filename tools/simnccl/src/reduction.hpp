#pragma once

#include <cstddef>
#include <vector>

#include "nccl_api.hpp"

namespace simnccl {

/// In which order the contributions are added up: floating-point results depend on it.
enum class Order {
  by_rank,  // 0, 1, 2, ...
  in_ring,  // from a first rank on, round
  in_pairs  // (0 + 1) + (2 + 3)
};

/// Bytes of an element; 0 for a type that does not exist.
[[nodiscard]] std::size_t element_bytes(ncclDataType_t type);
/// True for what reduce_elements knows. Half and narrower floating-point types can be moved only.
[[nodiscard]] bool can_reduce(ncclDataType_t type, ncclRedOp_t op);

/// Reduces `count` elements of every input, one input a rank, to `output`, which is none of them.
void reduce_elements(ncclDataType_t type, ncclRedOp_t op, Order order, std::size_t first,
                     const std::vector<const std::byte*>& inputs, std::size_t count,
                     std::byte* output);

}  // namespace simnccl
