#include <unistd.h>

#include <array>
#include <climits>
#include <contextune/error.hpp>
#include <csignal>
#include <iostream>

#include "cli/live/http_server.hpp"
#include "cli/live/live_pages.hpp"
#include "cli/live/live_report.hpp"
#include "cli/logs/log_contents.hpp"
#include "cli/words/commands.hpp"

namespace contextune::cli {
namespace {

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "HOST";
}

void print_address(const std::string& folder, const std::string& address, std::uint16_t port) {
  const std::string number = std::to_string(port);
  std::cout << "contextune: the report of " << folder << " while it grows, until Ctrl-C:\n\n  "
            << address
            << "\n\nWhoever has this address can read it, on this machine alone. From another "
               "one:\n\n  ssh -L "
            << number << ":127.0.0.1:" << number << " " << host_name()
            << "\n\nand open the same address there.\n"
            << std::flush;
}

}  // namespace

int answer(const FollowRequest& request) {
  try {
    const std::string folder = log_folder(request.folder);
    // The first to be waited for: a signal that comes early ends it as a later one does.
    asio::io_context loop(1);
    asio::signal_set signals(loop, SIGINT, SIGTERM);
    LiveReport report(loop, folder, request.run);
    LivePages pages(report);
    HttpServer server(loop, request.port, [&](const HttpRequest& asked, HttpAnswer answer) {
      pages.answer(asked, std::move(answer));
    });
    pages.set_port(server.port());
    signals.async_wait([&](const asio::error_code& error, int /*signal*/) {
      if (error) return;
      server.stop();
      loop.stop();
    });
    print_address(folder, pages.address(), server.port());
    if (!std::cout) throw Error("cannot write the address");
    loop.run();
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "contextune report: " << error.what() << std::endl;
    return 1;
  }
}

}  // namespace contextune::cli
