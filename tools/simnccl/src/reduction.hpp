#pragma once

#include <array>
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

/// Data types that nccl.h has from 2.24 on.
constexpr int float8_e4m3 = 10, float8_e5m2 = 11;

/// A value of any data type.
using Scalar = std::array<std::byte, 8>;

/// Bytes of an element; 0 for a type that does not exist.
[[nodiscard]] std::size_t element_bytes(ncclDataType_t type);
/// A number as a value of a type.
[[nodiscard]] Scalar scalar_of(ncclDataType_t type, double number);
[[nodiscard]] bool is_floating(ncclDataType_t type);

/// Multiplies `count` elements with a value, in place.
void scale_elements(ncclDataType_t type, const Scalar& by, std::byte* elements, std::size_t count);

/// Reduces `count` elements of every input, one input a rank, to `output`, which is none of them.
/// Each step is rounded to the type, as on a GPU. An average of integers is divided at the end; one
/// of floating-point numbers is a sum of inputs that were scaled.
void reduce_elements(ncclDataType_t type, ncclRedOp_t op, Order order, std::size_t first,
                     const std::vector<const std::byte*>& inputs, std::size_t count,
                     std::byte* output);

}  // namespace simnccl
