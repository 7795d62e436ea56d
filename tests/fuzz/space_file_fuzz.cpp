// Any text is a space file or a clear error; any rule of it gives an answer or a clear error.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <contextune/error.hpp>

#include "space/space_file.hpp"

namespace {

using contextune::Error;

/// An error that says where.
void check(const Error& error) {
  if (!std::string_view(error.what()).starts_with("fuzz.lua")) std::abort();
}

void use(contextune::KernelRule& rule, const contextune::LaunchView& launch) {
  contextune::LaunchReads reads;
  try {
    static_cast<void>(rule.key(launch, reads));
  } catch (const Error& error) {
    check(error);
  }
  try {
    std::size_t count = 0;
    for (const contextune::Config& config : rule.configs(launch)) {
      if (++count > 4) break;
      const contextune::LaunchChange change = rule.apply(config, launch, reads);
      if (change.block && (*change.block)[0] == 0) std::abort();
    }
  } catch (const Error& error) {
    check(error);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  contextune::DeviceFacts device;
  device.num_sms = 132;
  device.max_threads_per_block = 1024;
  const int number = 1000;
  const double ratio = 0.5;
  const std::array<const void*, 2> arguments = {&number, &ratio};
  const std::array<contextune::ArgumentLayout, 2> layouts = {{{0, 4}, {8, 8}}};
  contextune::LaunchView launch;
  launch.kernel = "k";
  launch.grid = {64, 1, 1};
  launch.block = {256, 1, 1};
  launch.arguments = arguments.data();
  launch.layouts = layouts.data();
  launch.num_arguments = arguments.size();
  launch.parameters = "int, double";
  try {
    const auto file = contextune::space::SpaceFile::parse(text, "fuzz.lua", device);
    for (const auto& rule : file.rules()) use(*rule, launch);
  } catch (const Error& error) {
    check(error);
  }
  return 0;
}
