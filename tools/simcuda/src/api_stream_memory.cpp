// Waiting for values in memory and writing them, in the order of a stream.
#include <algorithm>
#include <atomic>

#include "capture.hpp"
#include "stream_order.hpp"
#include "stream_time.hpp"

using namespace simcuda;

namespace {

template <class T>
bool holds(CUdeviceptr address, T value, unsigned condition) {
  const T now =
      std::atomic_ref<T>(*reinterpret_cast<T*>(static_cast<std::uintptr_t>(address))).load();
  switch (condition) {
    case CU_STREAM_WAIT_VALUE_GEQ:
      return static_cast<std::make_signed_t<T>>(now - value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
      return now == value;
    case CU_STREAM_WAIT_VALUE_AND:
      return (now & value) != 0;
    default:
      return static_cast<T>(~(now | value)) != 0;
  }
}

void check_address(CUdeviceptr address, std::size_t bytes) {
  require(address != 0 && address % bytes == 0);
  require(driver().memory.find(address) != nullptr);
}

template <class T>
CUresult wait_value(Stream& stream, CUdeviceptr address, T value, unsigned flags) {
  constexpr unsigned condition_bits = 3;
  require((flags & ~(condition_bits | CU_STREAM_WAIT_VALUE_FLUSH)) == 0);
  check_address(address, sizeof(T));
  check_implicit_dependency(stream);
  forbid_while_capturing(stream);
  if (stream.hung) return CUDA_SUCCESS;
  const unsigned condition = flags & condition_bits;
  if (driver().pending.immediate() && holds(address, value, condition)) return CUDA_SUCCESS;
  const auto seen = std::make_shared<Stamp>();
  put_off(
      stream, [&stream, seen] { stream.ready = std::max(stream.ready, seen->done); }, seen);
  const auto task = std::make_shared<Task>();
  task->may_run = [address, value, condition] { return holds(address, value, condition); };
  task->effect = [seen] {
    seen->done = driver().host_time;
    seen->known = true;
    reckon_what_is_known();
  };
  submit(stream, task);
  return CUDA_SUCCESS;
}

template <class T>
CUresult write_value(Stream& stream, CUdeviceptr address, T value, unsigned flags) {
  require(flags <= CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER);
  check_address(address, sizeof(T));
  check_implicit_dependency(stream);
  forbid_while_capturing(stream);
  if (stream.hung) return CUDA_SUCCESS;
  perform(stream, [address, value] {
    std::atomic_ref<T>(*reinterpret_cast<T*>(static_cast<std::uintptr_t>(address))).store(value);
  });
  return CUDA_SUCCESS;
}

CUresult batch(Stream& stream, unsigned count, const CUstreamBatchMemOpParams* operations,
               unsigned flags) {
  require(flags == 0 && count <= 256 && (count == 0 || operations != nullptr));
  for (unsigned i = 0; i < count; ++i) {
    const CUstreamBatchMemOpParams& one = operations[i];
    switch (one.operation) {
      case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        wait_value<cuuint32_t>(stream, one.waitValue.address, one.waitValue.value,
                               one.waitValue.flags);
        break;
      case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        wait_value<cuuint64_t>(stream, one.waitValue.address, one.waitValue.value64,
                               one.waitValue.flags);
        break;
      case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        write_value<cuuint32_t>(stream, one.writeValue.address, one.writeValue.value,
                                one.writeValue.flags);
        break;
      case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        write_value<cuuint64_t>(stream, one.writeValue.address, one.writeValue.value64,
                                one.writeValue.flags);
        break;
      case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
      case CU_STREAM_MEM_OP_BARRIER:
        break;
      default:
        throw Failure{CUDA_ERROR_INVALID_VALUE};
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace

// The first forms had to be asked for when the kernel module was loaded; they do the same here.
#define VALUE_FORMS(VERB, OPERATION, BITS, VERSION)                                    \
  SIMCUDA_BOTH_STREAMS(                                                                \
      cuStream##VERB##Value##BITS##VERSION, _ptsz,                                     \
      (CUstream stream, CUdeviceptr addr, cuuint##BITS##_t value, unsigned int flags), \
      { return OPERATION<cuuint##BITS##_t>(stream_of(stream, null_stream), addr, value, flags); })
VALUE_FORMS(Wait, wait_value, 32, )
VALUE_FORMS(Wait, wait_value, 32, _v2)
VALUE_FORMS(Wait, wait_value, 64, )
VALUE_FORMS(Wait, wait_value, 64, _v2)
VALUE_FORMS(Write, write_value, 32, )
VALUE_FORMS(Write, write_value, 32, _v2)
VALUE_FORMS(Write, write_value, 64, )
VALUE_FORMS(Write, write_value, 64, _v2)

SIMCUDA_BOTH_STREAMS(cuStreamBatchMemOp, _ptsz,
                     (CUstream stream, unsigned int count, CUstreamBatchMemOpParams* paramArray,
                      unsigned int flags),
                     { return batch(stream_of(stream, null_stream), count, paramArray, flags); })
SIMCUDA_BOTH_STREAMS(cuStreamBatchMemOp_v2, _ptsz,
                     (CUstream stream, unsigned int count, CUstreamBatchMemOpParams* paramArray,
                      unsigned int flags),
                     { return batch(stream_of(stream, null_stream), count, paramArray, flags); })
