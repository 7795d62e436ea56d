// The README's example, compiled and run as it stands there.
#include <cstdint>
#include <vector>

#include <contextune/contextune.hpp>

#include "catch.hpp"
#include "program.hpp"

namespace {

enum class DataType { f32, bf16 };

const float* some_x = nullptr;
float* some_y = nullptr;
std::vector<std::int64_t> blocks;

CUresult launch_scale(std::int64_t block, std::int64_t, const float*, float* y, int, DataType) {
  blocks.push_back(block);
  return Program::on().add(reinterpret_cast<CUdeviceptr>(y), 8, 1.0F, 1,
                           static_cast<unsigned>(block));
}

#include "autotune_example.hpp"

}  // namespace

TEST_CASE("The example of the README tunes its function", "[autotune]") {
  some_y = reinterpret_cast<float*>(Program::on().floats(8));
  CHECK(scale(some_x, some_y, 1000, DataType::f32) == CUDA_SUCCESS);
  CHECK(log_lines({"event=winner", "site=scale", "size=513-1024", "block=128"}).size() == 1);
  CHECK(log_lines({"event=winner", "site=scale", "size=32769-65536", "block=128"}).size() == 1);
  CHECK(log_lines({"event=site", "site=scale", "size=513-1024", "pruned_by_device=1"}).size() == 1);
  blocks.clear();
  CHECK(scale(some_x, some_y, 2000, DataType::f32) == CUDA_SUCCESS);
  CHECK(blocks == std::vector<std::int64_t>{128});
}
