#pragma once

/// All of contextune's C++ interface. contextune.h is the C one.
#include <contextune/autotune.hpp>
#include <contextune/buckets.hpp>
#include <contextune/choice.hpp>
#include <contextune/config.hpp>
#include <contextune/config_space.hpp>
#include <contextune/device.hpp>
#include <contextune/error.hpp>
#include <contextune/join.hpp>
#include <contextune/kernel.hpp>
#include <contextune/key.hpp>
#include <contextune/launch_limits.hpp>
#include <contextune/options.hpp>
#include <contextune/region.hpp>
#include <contextune/tensor.hpp>
#include <contextune/tunable.hpp>
#include <contextune/value.hpp>
#include <contextune/version.hpp>
