#include <exception>
#include <iostream>

#include "cli/words/commands.hpp"

namespace {

using namespace contextune::cli;

int answer(const TextRequest& request) {
  std::cout << request.text << std::flush;
  return std::cout ? 0 : 1;
}

int answer(const HelpRequest& request) {
  return answer(TextRequest{request.text});
}

int answer(const UsageError& error) {
  std::cerr << error.text << (error.text.ends_with('\n') ? "" : "\n") << std::flush;
  return error.exit_status;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Request request = parse_command_line({argv + 1, argv + argc});
    return std::visit([](const auto& what) { return answer(what); }, request);
  } catch (const std::exception& error) {
    std::cerr << "contextune: " << error.what() << std::endl;
    return 1;
  }
}
