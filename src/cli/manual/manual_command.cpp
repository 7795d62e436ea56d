#include <cerrno>
#include <contextune/error.hpp>
#include <contextune/version.hpp>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>

#include "cli/manual/manual_page.hpp"
#include "cli/words/commands.hpp"
#include "cli/words/documentation.hpp"

namespace contextune::cli {
namespace {

const std::string first_page = "contextune";

std::string page_name(std::string_view command) {
  return command.empty() ? first_page : first_page + "-" + std::string(command);
}

// Pages of contextune itself, which is "", and of the commands that have one.
std::vector<std::string> commands_with_a_page() {
  std::vector<std::string> commands = {""};
  for (const std::string_view name : command_names())
    if (help_of(name)) commands.emplace_back(name);
  return commands;
}

std::string page_of(const std::string& command) {
  ManualPage page;
  page.name = page_name(command);
  const HelpPage overview = read_help(main_help());
  page.purpose = command.empty() ? "tune the CUDA kernels of a program while it runs"
                                 : meaning_in(overview, command);
  page.help = command.empty() ? overview : read_help(help_of(command)->text);
  for (const std::string& other : commands_with_a_page())
    if (other != command) page.see_also.push_back(page_name(other));
  return roff_of(page, CONTEXTUNE_VERSION);
}

void write_page(const std::string& folder, const std::string& command) {
  const std::string path = folder + "/" + page_name(command) + ".1";
  errno = 0;
  std::ofstream file(path);
  file << page_of(command) << std::flush;
  if (!file) throw Error("cannot write " + path + ": " + std::strerror(errno));
}

}  // namespace

int answer(const ManualRequest& request) {
  if (request.folder.empty()) {
    std::cout << page_of(request.command) << std::flush;
    return std::cout ? 0 : 1;
  }
  if (!request.command.empty()) {
    write_page(request.folder, request.command);
    return 0;
  }
  for (const std::string& command : commands_with_a_page()) write_page(request.folder, command);
  return 0;
}

}  // namespace contextune::cli
