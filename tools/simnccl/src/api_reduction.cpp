// Reduction operations that the program makes.
#include <cstring>

#include "handle.hpp"

using namespace simnccl;

SIMNCCL_FUNCTION(ncclResult_t, ncclRedOpCreatePreMulSum,
                 (ncclRedOp_t * op, void* scalar, ncclDataType_t datatype,
                  ncclScalarResidence_t residence, ncclComm_t comm)) {
  return api([&] {
    ncclComm& handle = ready(comm);
    const std::size_t bytes = element_bytes(datatype);
    require(op != nullptr && scalar != nullptr && bytes != 0, ncclInvalidArgument,
            "an operation needs a value of a type, and a place");
    UserOperation made{datatype, {}};
    if (residence == ncclScalarDevice)
      made.scale.on_device = scalar;
    else
      std::memcpy(made.scale.value.data(), scalar, bytes);
    int number = ncclNumOps;
    while (handle.operations.count(static_cast<ncclRedOp_t>(number)) != 0) ++number;
    *op = static_cast<ncclRedOp_t>(number);
    handle.operations.emplace(*op, made);
    return ncclSuccess;
  });
}

SIMNCCL_FUNCTION(ncclResult_t, ncclRedOpDestroy, (ncclRedOp_t op, ncclComm_t comm)) {
  return api([&] {
    require(ready(comm).operations.erase(op) == 1, ncclInvalidArgument,
            "there is no such reduction operation");
    return ncclSuccess;
  });
}
