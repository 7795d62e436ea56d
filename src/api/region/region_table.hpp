#pragma once

#include <string_view>

#include <contextune/options.hpp>

#include "intercept/runtime/runtime.hpp"

namespace contextune::api {

/// The region that entries of that name on that device belong to, or null if there was none yet.
/// Each device has a region of its own: a winner on one says nothing about another. Threads that
/// drive a device each are tuned at the same time. Any thread; a hundred nanoseconds.
[[nodiscard]] intercept::Region* find_region(std::string_view name, int device) noexcept;

/// The same, made if there is none. The first device that enters gives its region the plain name.
/// @throws Error if there are too many regions
[[nodiscard]] intercept::Region& make_region(intercept::Runtime& runtime, std::string_view name,
                                             int device, const Options& author, const StoredAs& as);

}  // namespace contextune::api
