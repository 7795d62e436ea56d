#pragma once

#include <contextune/contextune.h>

namespace contextune::api {

/// contextune_region_query() in the copy that runs.
[[nodiscard]] int query_region(const char* name, contextune_region_report* report) noexcept;

}  // namespace contextune::api
