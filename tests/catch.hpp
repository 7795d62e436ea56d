// The one place that knows which Catch2 is installed.
#pragma once

#if CONTEXTUNE_CATCH2_VERSION == 3
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif
