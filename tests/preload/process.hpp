#pragma once

#include <map>
#include <string>
#include <vector>

namespace contextune::test {

/// What a child process did.
struct Outcome {
  int status;  ///< as waitpid reports it
  std::string out;
  std::string err;
  bool exited_with(int code) const;
  bool operator==(const Outcome&) const = default;
};

using Environment = std::map<std::string, std::string>;

/// Runs a program to its end, with the tests' environment, less what concerns contextune and the
/// dynamic linker, and with `environment` added.
/// @throws std::runtime_error if it cannot be started
Outcome run(const std::vector<std::string>& command, const Environment& environment = {},
            const std::string& input = {});

/// The same, with the frontend preloaded, after what `environment` preloads.
Outcome run_preloaded(const std::vector<std::string>& command, Environment environment = {},
                      const std::string& input = {});

/// The same, with the frontend beside the recording core. The second member is the record.
struct Recorded {
  Outcome outcome;
  std::string record;
};
Recorded run_recorded(const std::vector<std::string>& command, Environment environment = {});

std::string client(const std::string& name);
bool installed(const std::string& program);
std::vector<std::string> lines_of(const std::string& text);
std::size_t count_lines(const std::string& text, const std::string& line);

}  // namespace contextune::test
