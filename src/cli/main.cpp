#include <exception>
#include <iostream>

#include "cli/build_command.hpp"
#include "cli/doctor/doctor_command.hpp"
#include "cli/kernels_command.hpp"
#include "cli/logs/logs_command.hpp"
#include "cli/run/run_command.hpp"
#include "cli/store/store_command.hpp"
#include "cli/words/command_line.hpp"

namespace {

using namespace contextune::cli;

int act(const RunRequest& request) {
  return run_command(request);
}
int act(const LogsRequest& request) {
  return logs_command(request);
}
int act(const DoctorRequest& request) {
  return doctor_command(request);
}

int act(const BuildRequest& request) {
  return build_command(request);
}

int act(const KernelsRequest& request) {
  return kernels_command(request);
}

int act(const StoreRequest& request) {
  return store_command(request);
}

int act(const TextRequest& request) {
  std::cout << request.text << std::flush;
  return std::cout ? 0 : 1;
}

int act(const UsageError& error) {
  std::cerr << error.text << (error.text.ends_with('\n') ? "" : "\n") << std::flush;
  return error.exit_status;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Request request = parse_command_line({argv + 1, argv + argc});
    return std::visit([](const auto& what) { return act(what); }, request);
  } catch (const std::exception& error) {
    std::cerr << "contextune: " << error.what() << std::endl;
    return 1;
  }
}
