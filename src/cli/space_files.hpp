#pragma once

#include <string>
#include <vector>

#include "log/run_report.hpp"

namespace contextune::cli {

struct SpaceCheck {
  bool valid = false;
  std::string text;  ///< what is in it, or what is wrong where
};

/// Reads a space file as the core will.
[[nodiscard]] SpaceCheck check_space_file(const std::string& path);

/// Writes a space file to start from for the kernels that --discover has found; never over a file
/// that is there. Returns what was done, or why not, in a sentence.
/// @param path empty: contextune.lua
[[nodiscard]] std::string write_starter_file(const std::vector<log::ProcessReport>& processes,
                                             const std::string& path);

}  // namespace contextune::cli
