#pragma once

#include <string>
#include <string_view>

namespace contextune::log {

/// A fresh run id: six hexadecimal digits. Never blocks.
[[nodiscard]] std::string random_run_id();

/// The id that goes into a log as `run=`: `given` if it is 4 to 32 of [0-9A-Za-z_-], else a fresh
/// one. `contextune run` hands its own to the program as CONTEXTUNE_RUN_ID.
[[nodiscard]] std::string run_id_or_random(std::string_view given);

}  // namespace contextune::log
