#include "reduction.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace simnccl {

namespace {

constexpr std::size_t block = 1024;  // elements that are reduced before the next ones are looked at

template <class T>
using Block = std::array<T, block>;

/// Narrow floating-point types are computed with as float, and rounded after each step.
template <class T>
constexpr bool is_narrow = !std::is_arithmetic_v<T>;
template <class T>
constexpr bool is_real = is_narrow<T> || std::is_floating_point_v<T>;

template <class T>
T combine(ncclRedOp_t op, T a, T b) {
  if constexpr (is_narrow<T>) {
    return T(combine(op, static_cast<float>(a), static_cast<float>(b)));
  } else {
    // Integers wrap around, as on a GPU.
    using Wide = std::conditional_t<is_real<T>, T, std::uint64_t>;
    switch (op) {
      case ncclProd:
        return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b));
      case ncclMax:
        return std::max(a, b);
      case ncclMin:
        return std::min(a, b);
      default:
        return static_cast<T>(static_cast<Wide>(a) + static_cast<Wide>(b));
    }
  }
}

template <class T>
class Reducer {
 public:
  Reducer(ncclRedOp_t op, const std::vector<const std::byte*>& inputs) : op_(op), inputs_(inputs) {}

  void ring(std::size_t first, std::size_t begin, std::size_t count, Block<T>& out) const {
    load(first, begin, count, out);
    Block<T> next;
    for (std::size_t i = 1; i < inputs_.size(); ++i) {
      load((first + i) % inputs_.size(), begin, count, next);
      add(next, count, out);
    }
  }

  void pairs(std::size_t from, std::size_t to, std::size_t begin, std::size_t count,
             Block<T>& out) const {
    if (to - from == 1) {
      load(from, begin, count, out);
      return;
    }
    const std::size_t middle = from + (to - from + 1) / 2;
    Block<T> right;
    pairs(from, middle, begin, count, out);
    pairs(middle, to, begin, count, right);
    add(right, count, out);
  }

 private:
  void load(std::size_t rank, std::size_t begin, std::size_t count, Block<T>& to) const {
    std::memcpy(static_cast<void*>(to.data()), inputs_[rank] + begin * sizeof(T),
                count * sizeof(T));
  }
  void add(const Block<T>& from, std::size_t count, Block<T>& to) const {
    for (std::size_t i = 0; i < count; ++i) to[i] = combine(op_, to[i], from[i]);
  }

  ncclRedOp_t op_;
  const std::vector<const std::byte*>& inputs_;
};

template <class T>
void reduce_as(ncclRedOp_t op, Order order, std::size_t first,
               const std::vector<const std::byte*>& inputs, std::size_t count, std::byte* output) {
  const Reducer<T> reducer(op, inputs);
  Block<T> sum;
  for (std::size_t begin = 0; begin < count; begin += block) {
    const std::size_t now = std::min(block, count - begin);
    if (order == Order::in_pairs)
      reducer.pairs(0, inputs.size(), begin, now, sum);
    else
      reducer.ring(order == Order::in_ring ? first : 0, begin, now, sum);
    if constexpr (!is_real<T>)
      if (op == ncclAvg)
        for (std::size_t i = 0; i < now; ++i)
          sum[i] = static_cast<T>(sum[i] / static_cast<T>(inputs.size()));
    std::memcpy(output + begin * sizeof(T), static_cast<const void*>(sum.data()), now * sizeof(T));
  }
}

/// Calls `body` with a value of the C++ type that a data type is.
template <class Body>
auto with_type(ncclDataType_t type, Body&& body) {
  switch (static_cast<int>(type)) {
    case ncclInt8:
      return body(std::int8_t{});
    case ncclUint8:
      return body(std::uint8_t{});
    case ncclInt32:
      return body(std::int32_t{});
    case ncclUint32:
      return body(std::uint32_t{});
    case ncclInt64:
      return body(std::int64_t{});
    case ncclUint64:
      return body(std::uint64_t{});
    case ncclFloat16:
      return body(__half{});
    case ncclFloat64:
      return body(double{});
    case ncclBfloat16:
      return body(__nv_bfloat16{});
    case float8_e4m3:
      return body(__nv_fp8_e4m3{});
    case float8_e5m2:
      return body(__nv_fp8_e5m2{});
    default:
      return body(float{});
  }
}

}  // namespace

std::size_t element_bytes(ncclDataType_t type) {
  if (type < 0 || type > float8_e5m2) return 0;
  return with_type(type, [](auto zero) { return sizeof zero; });
}

bool is_floating(ncclDataType_t type) {
  return with_type(type, [](auto zero) { return is_real<decltype(zero)>; });
}

Scalar scalar_of(ncclDataType_t type, double number) {
  return with_type(type, [number](auto value) {
    using T = decltype(value);
    if constexpr (is_narrow<T>)
      value = T(static_cast<float>(number));
    else
      value = static_cast<T>(number);
    Scalar scalar{};
    std::memcpy(scalar.data(), &value, sizeof value);
    return scalar;
  });
}

void scale_elements(ncclDataType_t type, const Scalar& by, std::byte* elements, std::size_t count) {
  with_type(type, [&](auto factor) {
    std::memcpy(static_cast<void*>(&factor), by.data(), sizeof factor);
    auto element = factor;
    for (std::size_t i = 0; i < count; ++i) {
      std::byte* const at = elements + i * sizeof element;
      std::memcpy(static_cast<void*>(&element), at, sizeof element);
      element = combine(ncclProd, element, factor);
      std::memcpy(at, &element, sizeof element);
    }
  });
}

void reduce_elements(ncclDataType_t type, ncclRedOp_t op, Order order, std::size_t first,
                     const std::vector<const std::byte*>& inputs, std::size_t count,
                     std::byte* output) {
  with_type(type,
            [&](auto zero) { reduce_as<decltype(zero)>(op, order, first, inputs, count, output); });
}

}  // namespace simnccl
