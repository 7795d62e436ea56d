// The README's example of a region, compiled and run as it stands there.
#include <cstdint>
#include <vector>

#include <contextune/contextune.hpp>

#include "catch.hpp"
#include "program.hpp"

namespace {

constexpr int length = 64;

CUdeviceptr address_of(float* y) {
  return reinterpret_cast<CUdeviceptr>(y);
}

void launch_add(float* y, int count) {
  REQUIRE(Program::on().add(address_of(y), count, 1.0F, 4, 256) == CUDA_SUCCESS);
}

CUresult launch_add_more(std::int64_t block, float* y, int count) {
  return Program::on().launch("add_more", address_of(y), count, 2.0F, 4,
                              static_cast<unsigned>(block));
}

/// The kernel leaves x as it was: it adds nothing.
float launch_and_sum(float* x, int count) {
  REQUIRE(Program::on().add(address_of(x), count, 0.0F, 4, 512) == CUDA_SUCCESS);
  float sum = 0;
  for (const float value : Program::read(address_of(x), length)) sum += value;
  return sum;
}

}  // namespace

TEST_CASE("The example of the README tunes its region", "[region]") {
  auto* const x = reinterpret_cast<float*>(Program::on().floats(length));
  auto* const state = reinterpret_cast<float*>(Program::on().floats(length));
  const std::size_t state_bytes = length * sizeof(float);
#include "region_example.hpp"
  CHECK(sum == 0.0F);
  CHECK(Program::read(address_of(state), length) == std::vector<float>(length, 3.0F));
  CHECK(log_lines({"event=winner", "region=decode", "site=add ", "block=128"}).size() == 1);
  CHECK(log_lines({"event=winner", "region=decode", "site=add_more", "block=128"}).size() == 1);
  CHECK(log_lines({"event=winner", "region=sum", "site=add ", "block=128"}).size() == 1);
}
