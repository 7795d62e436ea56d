#include "cli/words/commands.hpp"

#include <dlfcn.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <iostream>

#include "gpu/driver/regular_file.hpp"
#include "gpu/driver/source_build.hpp"

namespace contextune::cli {
int answer(const BuildRequest& request) {
  // Nobody waits for the answer once the program that asked for it has ended.
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  const bool for_a_reader = isatty(STDOUT_FILENO) == 1;
  std::string answer;
  int status = 0;
  try {
    const gpu::CompiledSource compiled = gpu::NvrtcLibrary(&dlsym).compile(
        request.source, gpu::read_regular_file(request.source, gpu::most_source_bytes),
        request.options, request.kernel, request.compute_capability);
    answer = for_a_reader ? compiled.symbol + ": " + std::to_string(compiled.image.size()) +
                                " bytes of code\n"
                          : gpu::build_reply(compiled);
  } catch (const std::exception& error) {
    answer = error.what();
    if (for_a_reader) answer += '\n';
    status = 1;
  }
  std::cout << answer << std::flush;
  return std::cout ? status : 1;
}

}  // namespace contextune::cli
