#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include <contextune/buckets.hpp>
#include <contextune/key.hpp>

namespace contextune::collective {

/// The function that is asked of a group of ranks. Up to AllReduce a tuner plugin is given these
/// numbers; AllToAll has none, since NCCL makes point-to-point calls of it.
enum class Function : std::uint8_t {
  Broadcast = 0,
  Reduce = 1,
  AllGather = 2,
  ReduceScatter = 3,
  AllReduce = 4,
  AllToAll = 255,
};

/// Those that may be tuned.
inline constexpr std::array tunable_functions = {Function::Broadcast, Function::Reduce,
                                                 Function::AllGather, Function::ReduceScatter,
                                                 Function::AllReduce};

/// Numbered as NCCL's ncclDataType_t.
enum class Datatype : std::uint8_t {
  I8 = 0,
  U8 = 1,
  I32 = 2,
  U32 = 3,
  I64 = 4,
  U64 = 5,
  F16 = 6,
  F32 = 7,
  F64 = 8,
  BF16 = 9,
  F8E4M3 = 10,
  F8E5M2 = 11,
};

/// Numbered as NCCL's ncclRedOp_t; every greater number is an operator that the program made, and
/// of those there is one kind.
enum class Operator : std::uint8_t {
  Sum = 0,
  Prod = 1,
  Max = 2,
  Min = 3,
  Avg = 4,
  PreMulSum = 5,  ///< each rank's numbers times a scalar of its own, then the sum
};

// The meanings of NCCL's numbers; absent for those that this version does not know.
[[nodiscard]] std::optional<Function> function_of_nccl(int number) noexcept;
[[nodiscard]] std::optional<Datatype> datatype_of_nccl(int number) noexcept;
[[nodiscard]] std::optional<Operator> operator_of_nccl(int number) noexcept;

/// "all_reduce": as space files and the rank log have it.
[[nodiscard]] std::string_view name_of(Function function) noexcept;
/// "f32"
[[nodiscard]] std::string_view name_of(Datatype datatype) noexcept;
/// "sum"
[[nodiscard]] std::string_view name_of(Operator op) noexcept;

[[nodiscard]] std::uint64_t bytes_of(Datatype datatype) noexcept;
[[nodiscard]] bool is_floating(Datatype datatype) noexcept;

/// Whether numbers are combined; the rest only moves them.
[[nodiscard]] bool is_reduction(Function function) noexcept;

/// Size of a message as a tuner plugin is told it: element size times the larger of what a rank
/// sends and receives. The program's count is that of one rank for AllGather, ReduceScatter and
/// AllToAll, so it counts `ranks` times there. Stays at the largest number where it would wrap.
[[nodiscard]] std::uint64_t message_bytes(Function function, Datatype datatype, std::uint64_t count,
                                          int ranks) noexcept;

/// The ranks of a communicator as far as they make two problems the same: how many, and on how
/// many nodes. NCCL tells no more. Never an identity of the run.
struct Communicator {
  int ranks = 1;
  int nodes = 1;

  [[nodiscard]] bool operator==(const Communicator& other) const = default;
};

/// A collective as a program asks for it.
struct Collective {
  Function function = Function::AllReduce;
  Datatype datatype = Datatype::F32;  ///< this and `op` are of no account where nothing is reduced
  Operator op = Operator::Sum;
  std::uint64_t bytes = 0;  ///< message_bytes
  Communicator communicator;
};

/// The key that makes two collectives of one function one site: bucket of the size, the
/// communicator as {ranks, nodes}, and for reductions datatype and operator. All of it is the same
/// on all ranks of the communicator, since ranks must not differ in their config. So it leaves out
/// whether the buffers are one, and the datatype of data that is only moved: ranks may differ in
/// those.
[[nodiscard]] Key key_of(const Collective& collective, const Buckets& buckets);

}  // namespace contextune::collective
