#pragma once

namespace simcuda {

/// The CUDA version of the newest entry points in here: what cuDriverGetVersion says unless
/// SIMCUDA_VERSION does.
constexpr int newest_version = 13000;

}  // namespace simcuda
