// Any bytes as the image of a module: they are read or refused with a reason. Starts well from a
// folder of real images, which the unit tests' build leaves in tests/unit/gpu/images.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "gpu/image/kernel_image.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace contextune::gpu;
  const BufferSource image(std::string_view(reinterpret_cast<const char*>(data), size));
  std::string why;
  const auto code = read_kernel_image(image, 90, why);
  if (code.has_value() != why.empty()) std::abort();
  if (!code) return 0;
  for (std::size_t i = 0; i < code->variables.size(); ++i) {
    // Each can be looked up by its name, once.
    if (code->variables[i].name.empty()) std::abort();
    if (i > 0 && code->variables[i - 1].name >= code->variables[i].name) std::abort();
  }
  return 0;
}
