// What a collective is, and what makes two of them one site.

#include "catch.hpp"
#include "collective/collective.hpp"

using namespace contextune::collective;

namespace {

Collective all_reduce_of(std::uint64_t bytes) {
  Collective collective;
  collective.bytes = bytes;
  collective.communicator = {8, 2};
  return collective;
}

}  // namespace

TEST_CASE("A message has the size that NCCL tells its tuner", "[collective]") {
  // The program's count is one rank's part for these, and the tuner is told of the whole.
  CHECK(message_bytes(Function::AllGather, Datatype::F32, 1000, 8) == 32'000);
  CHECK(message_bytes(Function::ReduceScatter, Datatype::BF16, 1000, 8) == 16'000);
  CHECK(message_bytes(Function::AllToAll, Datatype::U8, 10, 4) == 40);
  CHECK(message_bytes(Function::AllReduce, Datatype::F32, 1000, 8) == 4'000);
  CHECK(message_bytes(Function::Broadcast, Datatype::F64, 1000, 8) == 8'000);
  CHECK(message_bytes(Function::Reduce, Datatype::F8E4M3, 1000, 8) == 1'000);
}

TEST_CASE("A message that is too large to be counted does not become a small one", "[collective]") {
  constexpr std::uint64_t most = contextune::SizeBucket::no_limit;
  CHECK(message_bytes(Function::AllReduce, Datatype::F64, most / 4, 2) == most);
  CHECK(message_bytes(Function::AllGather, Datatype::U8, most / 2, 3) == most);
}

TEST_CASE("NCCL's numbers are read as far as they are known", "[collective]") {
  CHECK(function_of_nccl(2) == Function::AllGather);
  CHECK(function_of_nccl(4) == Function::AllReduce);
  CHECK_FALSE(function_of_nccl(5).has_value());  // SendRecv
  CHECK_FALSE(function_of_nccl(-1).has_value());
  CHECK(datatype_of_nccl(7) == Datatype::F32);
  CHECK(datatype_of_nccl(9) == Datatype::BF16);
  CHECK_FALSE(datatype_of_nccl(12).has_value());
  CHECK(operator_of_nccl(2) == Operator::Max);
  CHECK(operator_of_nccl(4) == Operator::Avg);
  // What a program makes with ncclRedOpCreatePreMulSum is numbered from here on.
  CHECK(operator_of_nccl(5) == Operator::PreMulSum);
  CHECK(operator_of_nccl(4000) == Operator::PreMulSum);
  CHECK_FALSE(operator_of_nccl(-1).has_value());
}

TEST_CASE("The key of a collective site names what makes two calls one problem", "[collective]") {
  const contextune::Buckets buckets;
  CHECK(key_of(all_reduce_of(60'000), buckets).to_string() ==
        "type=f32 op=sum bytes=32769-65536 ranks=8 nodes=2");
  CHECK(key_of(all_reduce_of(60'000), buckets) == key_of(all_reduce_of(40'000), buckets));
  CHECK_FALSE(key_of(all_reduce_of(60'000), buckets) == key_of(all_reduce_of(70'000), buckets));

  const contextune::Key key = key_of(all_reduce_of(60'000), buckets);
  Collective other = all_reduce_of(60'000);
  SECTION("datatype") {
    other.datatype = Datatype::BF16;
  }
  SECTION("operator") {
    other.op = Operator::Max;
  }
  SECTION("ranks") {
    other.communicator.ranks = 4;
  }
  SECTION("nodes") {
    other.communicator.nodes = 1;
  }
  CHECK_FALSE(key_of(other, buckets) == key);
}

TEST_CASE("What only moves data has neither datatype nor operator in its key", "[collective]") {
  Collective gather = all_reduce_of(4096);
  gather.function = Function::AllGather;
  Collective same = gather;
  same.op = Operator::Max;
  same.datatype = Datatype::U8;
  CHECK(key_of(gather, contextune::Buckets()) == key_of(same, contextune::Buckets()));
}
