#pragma once

#include <contextune/contextune.h>
#include <contextune/region_options.hpp>

namespace contextune {

/// Sets the options of an entry that has begun, and the memory that it restores; its ranks and its
/// restore callable are the caller's.
/// @throws Error for what it cannot have
void set_up_region(contextune_entry& entry, const RegionOptions& options);

}  // namespace contextune
