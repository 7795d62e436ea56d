#include "reduction.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace simnccl {

namespace {

constexpr std::size_t block = 1024;  // elements that are reduced before the next ones are looked at

template <class T>
using Block = std::array<T, block>;

template <class T>
T combine(ncclRedOp_t op, T a, T b) {
  // Integers wrap around, as on a GPU.
  using Wide = std::conditional_t<std::is_floating_point_v<T>, T, std::uint64_t>;
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
    std::memcpy(to.data(), inputs_[rank] + begin * sizeof(T), count * sizeof(T));
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
    if (op == ncclAvg)
      for (std::size_t i = 0; i < now; ++i)
        sum[i] = static_cast<T>(sum[i] / static_cast<T>(inputs.size()));
    std::memcpy(output + begin * sizeof(T), sum.data(), now * sizeof(T));
  }
}

}  // namespace

std::size_t element_bytes(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
    case ncclFloat8e4m3:
    case ncclFloat8e5m2:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
      return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
      return 8;
    default:
      return 0;
  }
}

bool can_reduce(ncclDataType_t type, ncclRedOp_t op) {
  const bool narrow = type == ncclFloat16 || type == ncclBfloat16 || type == ncclFloat8e4m3 ||
                      type == ncclFloat8e5m2;
  return element_bytes(type) != 0 && !narrow && op >= ncclSum && op < ncclNumOps;
}

void reduce_elements(ncclDataType_t type, ncclRedOp_t op, Order order, std::size_t first,
                     const std::vector<const std::byte*>& inputs, std::size_t count,
                     std::byte* output) {
  switch (type) {
    case ncclInt8:
      return reduce_as<std::int8_t>(op, order, first, inputs, count, output);
    case ncclUint8:
      return reduce_as<std::uint8_t>(op, order, first, inputs, count, output);
    case ncclInt32:
      return reduce_as<std::int32_t>(op, order, first, inputs, count, output);
    case ncclUint32:
      return reduce_as<std::uint32_t>(op, order, first, inputs, count, output);
    case ncclInt64:
      return reduce_as<std::int64_t>(op, order, first, inputs, count, output);
    case ncclUint64:
      return reduce_as<std::uint64_t>(op, order, first, inputs, count, output);
    case ncclFloat64:
      return reduce_as<double>(op, order, first, inputs, count, output);
    default:
      return reduce_as<float>(op, order, first, inputs, count, output);
  }
}

}  // namespace simnccl
