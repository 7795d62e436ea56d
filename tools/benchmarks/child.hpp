#pragma once

#include <string>
#include <vector>

namespace bench {

/// The running program's file. @throws std::runtime_error
[[nodiscard]] std::string this_program();

/// Runs a program and waits for its end.
/// @param settings changes of the environment: "NAME=value", or "NAME" for none of that name
/// @throws std::runtime_error if it cannot be started, or ends with anything but 0
void run_program(const std::vector<std::string>& arguments,
                 const std::vector<std::string>& settings);

}  // namespace bench
