#include "collective/lease.hpp"

#include <set>

#include "catch.hpp"

using namespace contextune::collective;

TEST_CASE("Every datatype and operator is a kind of its own", "[lease]") {
  std::set<std::uint8_t> kinds{0};
  for (int datatype = 0; datatype_of_nccl(datatype); ++datatype) {
    for (int op = 0; op <= static_cast<int>(Operator::PreMulSum); ++op) {
      const std::uint8_t kind = kind_of(*datatype_of_nccl(datatype), *operator_of_nccl(op));
      CHECK(kinds.insert(kind).second);
      CHECK(datatype_of(kind) == *datatype_of_nccl(datatype));
      CHECK(operator_of(kind) == *operator_of_nccl(op));
    }
  }
}
