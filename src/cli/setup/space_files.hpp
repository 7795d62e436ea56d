#pragma once

#include <string>
#include <vector>

#include "log/run_report.hpp"
#include "space/space_file.hpp"

namespace contextune::cli {

struct SpaceFiles {
  std::vector<space::SpaceFile> files;
  bool all_known = true;
};

struct SpaceCheck {
  bool valid = false;
  std::string text;  ///< what is in it, or what is wrong where
};

/// Reads a space file as the core will.
[[nodiscard]] SpaceCheck check_space_file(const std::string& path);

/// Reads the files of the option `space`, separated by ':', without asking a GPU. A file that asks
/// about the device and cannot be used with the one that is assumed is not among `files`.
/// @throws Error for a file that can be used on no device
[[nodiscard]] SpaceFiles load_space_files(const std::string& paths);

/// Writes a space file to start from for the kernels that --discover has found; never over a file
/// that is there. Returns what was done, or why not, in a sentence.
/// @param path empty: contextune.lua
[[nodiscard]] std::string write_starter_file(const std::vector<log::ProcessReport>& processes,
                                             const std::string& path);

}  // namespace contextune::cli
