#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include <contextune/key.hpp>

namespace contextune {

/// The part of a tensor that makes a launch another problem: its shape, strides and element type,
/// not its address nor its contents. A plain value.
struct Tensor {
  std::vector<std::int64_t> shape;  ///< elements in each dimension; outermost first
  std::vector<std::int64_t>
      strides;       ///< in elements; empty: contiguous, the last dimension fastest
  std::string type;  ///< "f32", "bf16", ...; element_type<T>() names C++'s own types
};

/// "f32", "i64", "u8" or "bool": the name of an arithmetic C++ type as it goes into keys.
template <class T>
requires std::is_arithmetic_v<T>
[[nodiscard]] std::string element_type() {
  if constexpr (std::is_same_v<std::remove_cv_t<T>, bool>) {
    return "bool";
  } else {
    const char kind = std::is_floating_point_v<T> ? 'f' : std::is_signed_v<T> ? 'i' : 'u';
    return kind + std::to_string(8 * sizeof(T));
  }
}

/// Parts of a key: "x.shape=4096x1024 x.type=f32", and "x.strides=1x4096" where the tensor is not
/// contiguous. Strides of dimensions of one element do not matter and count as contiguous. A tensor
/// without dimensions has the shape "scalar".
/// @throws Error if there are strides, but not one for each dimension
[[nodiscard]] Key tensor_key(const std::string& name, const Tensor& tensor);

/// The parts of several tensors, named t0, t1, ... in order.
template <class... Tensors>
requires(std::is_same_v<std::decay_t<Tensors>, Tensor>&&...) [[nodiscard]] Key
    tensor_key(const Tensor& first, const Tensors&... rest) {
  Key key = tensor_key("t0", first);
  int number = 0;
  (key.append(tensor_key("t" + std::to_string(++number), rest)), ...);
  return key;
}

}  // namespace contextune
