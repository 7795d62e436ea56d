#include "driver.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace simcuda {

namespace {

std::string setting(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? "" : text;
}

// Only a test sets such a variable; a test that asks for nothing real must not pass.
[[noreturn]] void refuse(const char* name, const std::string& text) {
  std::fprintf(stderr, "simcuda: %s='%s' is not understood, see README.md\n", name, text.c_str());
  std::abort();
}

}  // namespace

Driver& Driver::instance() {
  static auto* const driver = new Driver;
  return *driver;
}

Driver::Driver() {
  if (const std::string text = setting("SIMCUDA_DEVICES"); !text.empty())
    device_count_ = std::clamp(std::atoi(text.c_str()), 0, 16);
  if (const std::string text = setting("SIMCUDA_GPU"); !text.empty()) {
    const auto parsed = parse_profile(text);
    if (!parsed) refuse("SIMCUDA_GPU", text);
    profile_ = *parsed;
  }
  if (const std::string text = setting("SIMCUDA_VERSION"); !text.empty()) {
    version_ = static_cast<int>(std::lround(std::strtod(text.c_str(), nullptr) * 100)) * 10;
    if (version_ < 12000) refuse("SIMCUDA_VERSION", text);
  }
  if (const std::string text = setting("SIMCUDA_NOISE"); !text.empty())
    noise_ = std::max(0.0, std::strtod(text.c_str(), nullptr));
  if (const std::string text = setting("SIMCUDA_SEED"); !text.empty())
    seed_ = std::strtoull(text.c_str(), nullptr, 10);
  if (const std::string text = setting("SIMCUDA_ORDER"); !text.empty()) {
    std::uint64_t seed = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
    if (error != std::errc{} || end != text.data() + text.size()) refuse("SIMCUDA_ORDER", text);
    pending.set_order(seed);
  }
  if (const std::string text = setting("SIMCUDA_EXIT"); !text.empty()) {
    if (text != "deinitialise") refuse("SIMCUDA_EXIT", text);
    ends_ = true;
  }
  if (const std::string text = setting("SIMCUDA_FAULT"); !text.empty()) {
    const auto parsed = Faults::parse(text);
    if (!parsed) refuse("SIMCUDA_FAULT", text);
    faults = *parsed;
  }
}

void Driver::initialise() {
  if (initialised) return;
  require(!faults.no_device() && device_count_ > 0, CUDA_ERROR_NO_DEVICE);
  for (int i = 0; i < device_count_; ++i)
    devices.push_back(std::make_unique<Device>(profile_, i, noise_, seed_));
  initialised = true;
  if (ends_) (void)std::atexit([] { driver().ended.store(true, std::memory_order_release); });
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
