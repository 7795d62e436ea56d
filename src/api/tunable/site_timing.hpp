#pragma once

#include <cstdint>

#include <contextune/contextune.h>

#include "intercept/site/site.hpp"

namespace contextune::api {

/// Fills in what is known of a config of a site: measured in this run, or in the earlier one whose
/// winner the site started with. What is not known stays as it is.
/// @param site null: nothing is known
void add_known(contextune_timing& timing, const intercept::Site* site,
               std::uint32_t config) noexcept;

}  // namespace contextune::api
