#pragma once

#include <cstddef>
#include <string>

#include "store/entry.hpp"

namespace contextune::cli {

/// Every config of every site that was tried, as results of the T4 format: the auto-tuning
/// community's JSON for what a tuner has measured. Times in milliseconds, as other tuners give
/// them. The format knows no sites: each result also has the members `site` and `key`.
/// @param site empty: all
/// @param results set to their number
[[nodiscard]] std::string t4_json(const store::Entry& entry, const std::string& site,
                                  std::size_t& results);

/// The winners of collectives as nccl_csv() has them.
/// @param site empty: all
/// @param rows set to the number of rows that are in effect
/// @param unknown set to how many keep a default of which the store does not know what it is
[[nodiscard]] std::string stored_nccl_csv(const store::Entry& entry, const std::string& site,
                                          std::size_t& rows, std::size_t& unknown);

}  // namespace contextune::cli
