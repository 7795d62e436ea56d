#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <contextune/config.hpp>

#include "core/value/kernel_rule.hpp"

namespace contextune::space {

/// Grid, block or cluster as `apply` writes it, one dimension at a time.
struct ExtentEdit {
  std::array<std::uint32_t, 3> value{};
  std::array<bool, 3> written{};
  int line = 0;  ///< of the last write

  [[nodiscard]] bool any() const { return written[0] || written[1] || written[2]; }
  [[nodiscard]] bool all() const { return written[0] && written[1] && written[2]; }
};

/// The edits that `apply` has made to the launch so far.
struct LaunchEdit {
  ExtentEdit grid;
  ExtentEdit block;
  ExtentEdit cluster;
  std::optional<std::uint32_t> shared_bytes;
  int shared_line = 0;
  std::string function;
  std::string module;
  std::string source;
  int code_line = 0;  ///< of the last write to function, module, source, defines or options
  std::vector<std::pair<std::string, std::string>> defines;
  std::vector<std::string> options;
};

/// The things that a script's objects `launch`, `config` and `device` stand for while one of its
/// functions runs. Null outside of a call: a script that kept an object gets an error, not an old
/// launch.
struct Scene {
  DeviceFacts device;
  bool device_was_read = false;
  const LaunchView* launch = nullptr;
  const Config* config = nullptr;
  std::string_view kernel;                       ///< as declared
  std::span<const ArgumentType> argument_types;  ///< empty: not known
  bool writable = false;                         ///< in `apply`
  LaunchReads reads;
  LaunchEdit edit;
};

}  // namespace contextune::space
