// The README's example of a choice, compiled and run as it stands there. In place of NCCL and of a
// ring there are kernels that add 1.
#include <vector>

#include <contextune/contextune.hpp>

#include "catch.hpp"
#include "program.hpp"

namespace {

enum ncclResult_t { ncclSuccess };
using cudaStream_t = CUstream;

std::vector<std::int64_t> chunks;  // 0: NCCL

ncclResult_t add_one(float* out, std::size_t n, cudaStream_t stream, unsigned block) {
  const auto y = reinterpret_cast<CUdeviceptr>(out);
  REQUIRE(Program::on().add(y, static_cast<int>(n), 1.0F, 1, block, stream) == CUDA_SUCCESS);
  return ncclSuccess;
}

ncclResult_t with_nccl(const contextune::Config&, const float*, float* out, std::size_t n,
                       cudaStream_t stream) {
  chunks.push_back(0);
  return add_one(out, n, stream, 256);
}

ncclResult_t with_a_ring(const contextune::Config& config, const float*, float* out, std::size_t n,
                         cudaStream_t stream) {
  chunks.push_back(config.get_int("chunk"));
  return add_one(out, n, stream, chunks.back() == 65536 ? 64 : 128);
}

}  // namespace

TEST_CASE("The example of the README finds the fastest implementation", "[choice]") {
  const std::size_t count = 1 << 16;
  const float* const gradients = nullptr;
  auto* const sums = reinterpret_cast<float*>(Program::on().floats(count));
  const cudaStream_t stream = nullptr;
  void* const communicator = nullptr;
#include "choice_example.hpp"
  CHECK(log_lines({"event=winner", "site=all_reduce", "implementation=ring", "chunk=262144"})
            .size() == 1);
  chunks.clear();
  all_reduce(gradients, sums, count, stream);
  all_reduce(gradients, sums, 1024, stream);
  CHECK(chunks == std::vector<std::int64_t>{262144, 0});
  CHECK(Program::read(reinterpret_cast<CUdeviceptr>(sums), 1) == std::vector<float>{3.0F});
}
