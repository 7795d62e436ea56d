#include "collective/collective.hpp"

#include <algorithm>
#include <limits>

namespace contextune::collective {
namespace {

constexpr int last_function = static_cast<int>(Function::AllReduce);
constexpr int last_datatype = static_cast<int>(Datatype::F8E5M2);
constexpr int first_made_operator = static_cast<int>(Operator::PreMulSum);

std::uint64_t product_or_most(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<std::uint64_t>::max()
                                                : product;
}

}  // namespace

std::optional<Function> function_of_nccl(int number) noexcept {
  if (number < 0 || number > last_function) return std::nullopt;
  return static_cast<Function>(number);
}

std::optional<Datatype> datatype_of_nccl(int number) noexcept {
  if (number < 0 || number > last_datatype) return std::nullopt;
  return static_cast<Datatype>(number);
}

std::optional<Operator> operator_of_nccl(int number) noexcept {
  if (number < 0) return std::nullopt;
  return static_cast<Operator>(std::min(number, first_made_operator));
}

std::string_view name_of(Function function) noexcept {
  switch (function) {
    case Function::Broadcast:
      return "broadcast";
    case Function::Reduce:
      return "reduce";
    case Function::AllGather:
      return "all_gather";
    case Function::ReduceScatter:
      return "reduce_scatter";
    case Function::AllReduce:
      return "all_reduce";
    case Function::AllToAll:
      return "all_to_all";
  }
  return "unknown";
}

std::string_view name_of(Datatype datatype) noexcept {
  constexpr std::string_view names[] = {"i8",  "u8",  "i32", "u32",  "i64",    "u64",
                                        "f16", "f32", "f64", "bf16", "f8e4m3", "f8e5m2"};
  return names[static_cast<std::size_t>(datatype)];
}

std::string_view name_of(Operator op) noexcept {
  constexpr std::string_view names[] = {"sum", "prod", "max", "min", "avg", "premulsum"};
  return names[static_cast<std::size_t>(op)];
}

std::uint64_t bytes_of(Datatype datatype) noexcept {
  switch (datatype) {
    case Datatype::I8:
    case Datatype::U8:
    case Datatype::F8E4M3:
    case Datatype::F8E5M2:
      return 1;
    case Datatype::F16:
    case Datatype::BF16:
      return 2;
    case Datatype::I32:
    case Datatype::U32:
    case Datatype::F32:
      return 4;
    case Datatype::I64:
    case Datatype::U64:
    case Datatype::F64:
      return 8;
  }
  return 1;
}

bool is_floating(Datatype datatype) noexcept {
  return datatype >= Datatype::F16;
}

bool is_reduction(Function function) noexcept {
  return function == Function::AllReduce || function == Function::ReduceScatter ||
         function == Function::Reduce;
}

std::uint64_t message_bytes(Function function, Datatype datatype, std::uint64_t count,
                            int ranks) noexcept {
  const bool counts_one_rank = function == Function::AllGather ||
                               function == Function::ReduceScatter ||
                               function == Function::AllToAll;
  const std::uint64_t parts = counts_one_rank ? static_cast<std::uint64_t>(std::max(ranks, 1)) : 1;
  return product_or_most(product_or_most(count, bytes_of(datatype)), parts);
}

Key key_of(const Collective& collective, const Buckets& buckets) {
  Key key;
  if (is_reduction(collective.function)) {
    key.add("type", std::string(name_of(collective.datatype)));
    key.add("op", std::string(name_of(collective.op)));
  }
  key.add("bytes", buckets.key_part(collective.bytes));
  key.add("ranks", collective.communicator.ranks);
  key.add("nodes", collective.communicator.nodes);
  return key;
}

}  // namespace contextune::collective
