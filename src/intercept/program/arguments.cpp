#include "intercept/program/arguments.hpp"

namespace contextune::intercept {
namespace {

struct Packed {
  const char* data = nullptr;
  std::size_t size_bytes = 0;
};

Packed packed_arguments(void** extra) noexcept {
  Packed packed;
  // A list of names and values that ends with CU_LAUNCH_PARAM_END; the names are small integers.
  constexpr std::size_t most_entries = 8;
  for (std::size_t i = 0; i < most_entries && extra[2 * i] != CU_LAUNCH_PARAM_END; ++i) {
    void* value = extra[2 * i + 1];
    if (extra[2 * i] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      packed.data = static_cast<const char*>(value);
    } else if (extra[2 * i] == CU_LAUNCH_PARAM_BUFFER_SIZE && value != nullptr) {
      packed.size_bytes = *static_cast<const std::size_t*>(value);
    }
  }
  return packed;
}

}  // namespace

const void* argument_of(const Launch& launch, std::size_t index,
                        const ArgumentLayout& layout) noexcept {
  if (launch.kernel_params != nullptr) return launch.kernel_params[index];
  if (launch.extra == nullptr) return nullptr;
  const Packed packed = packed_arguments(launch.extra);
  if (packed.data == nullptr || layout.offset_bytes + layout.size_bytes > packed.size_bytes) {
    return nullptr;
  }
  return packed.data + layout.offset_bytes;
}

std::vector<const void*> arguments_of(const Launch& launch,
                                      std::span<const ArgumentLayout> layouts) {
  std::vector<const void*> arguments;
  arguments.reserve(layouts.size());
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    const void* argument = argument_of(launch, i, layouts[i]);
    if (argument == nullptr) return {};
    arguments.push_back(argument);
  }
  return arguments;
}

}  // namespace contextune::intercept
