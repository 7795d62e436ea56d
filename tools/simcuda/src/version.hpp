#pragma once

namespace simcuda {

/// What cuDriverGetVersion says: the CUDA version of the newest entry points in here.
constexpr int driver_version = 13000;

}  // namespace simcuda
