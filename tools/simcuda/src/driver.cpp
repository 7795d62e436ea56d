#include "driver.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace simcuda {

namespace {

std::string setting(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? "" : text;
}

}  // namespace

Driver& Driver::instance() {
  static auto* const driver = new Driver;
  return *driver;
}

Driver::Driver() {
  if (const std::string text = setting("SIMCUDA_DEVICES"); !text.empty())
    device_count_ = std::clamp(std::atoi(text.c_str()), 0, 16);
  if (const std::string text = setting("SIMCUDA_NOISE"); !text.empty())
    noise_ = std::max(0.0, std::strtod(text.c_str(), nullptr));
  if (const std::string text = setting("SIMCUDA_SEED"); !text.empty())
    seed_ = std::strtoull(text.c_str(), nullptr, 10);
  if (const std::string text = setting("SIMCUDA_FAULT"); !text.empty()) {
    if (const auto parsed = Faults::parse(text)) {
      faults = *parsed;
    } else {
      // Only a test sets this variable; a test that asks for nothing real must not pass.
      std::fprintf(stderr, "simcuda: SIMCUDA_FAULT='%s' is not understood, see README.md\n",
                   text.c_str());
      std::abort();
    }
  }
}

void Driver::initialise() {
  if (initialised) return;
  require(!faults.no_device() && device_count_ > 0, CUDA_ERROR_NO_DEVICE);
  for (int i = 0; i < device_count_; ++i)
    devices.push_back(std::make_unique<Device>(i, noise_, seed_));
  initialised = true;
}

Device& Driver::device(int index) {
  require(index >= 0 && static_cast<std::size_t>(index) < devices.size(),
          CUDA_ERROR_INVALID_DEVICE);
  return *devices[static_cast<std::size_t>(index)];
}

void Driver::report(simcuda_activity& activity) {
  if (const simcuda_listener* const to = listener.load(std::memory_order_acquire);
      to != nullptr && to->activity != nullptr)
    to->activity(&activity);
}

}  // namespace simcuda
