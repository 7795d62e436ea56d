#pragma once

#include <algorithm>
#include <cstdint>

#include "objects.hpp"

namespace simcuda {

/// A CUDA array. Its elements lie row by row, which no program can see.
struct Array : Object {
  static constexpr Kind kind = Kind::array;
  Array() : Object(kind) {}

  CUDA_ARRAY3D_DESCRIPTOR shape{};
  std::size_t element_bytes = 0;
  std::uintptr_t begin = 0;

  [[nodiscard]] std::size_t row_bytes() const { return shape.Width * element_bytes; }
  [[nodiscard]] std::size_t rows() const { return std::max<std::size_t>(shape.Height, 1); }
  [[nodiscard]] std::size_t bytes() const {
    return row_bytes() * rows() * std::max<std::size_t>(shape.Depth, 1);
  }
};

}  // namespace simcuda
