#pragma once

#include "objects.hpp"

namespace simcuda {

/// A texture object over linear memory.
struct Texture : Object {
  static constexpr Kind kind = Kind::texture;
  Texture() : Object(kind) {}

  CUDA_RESOURCE_DESC resource{};
};

}  // namespace simcuda
