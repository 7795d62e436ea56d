#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/value/fallback_reason.hpp"

namespace contextune::intercept {

/// Ranks of the job that do something together.
struct RankGroup {
  std::vector<std::uint32_t> ranks;  ///< ascending; empty: they are not known, see `why`
  bool is_whole_job = false;
  bool is_cut_short = false;  ///< others of the job may have been coming
  std::string found_by;       ///< a clause: why these, where not all
  bool knows_job = false;     ///< this process is or was of the job: it joins no other
  FallbackReason reason = FallbackReason::NoRendezvous;  ///< with `why`
  std::string why;                                       ///< a clause
};

}  // namespace contextune::intercept
