#include <contextune/error.hpp>
#include <iostream>

#include "cli/logs/log_contents.hpp"
#include "cli/page/page.hpp"
#include "cli/page/page_data.hpp"
#include "cli/page/page_file.hpp"
#include "cli/words/commands.hpp"

namespace contextune::cli {

int answer(const ReportRequest& request) {
  try {
    LogContents contents = read_logs(log_folder(request.folder));
    if (contents.num_records == 0)
      throw Error("no line in " + contents.folder + " could be read; `contextune logs` lists them");
    select_run(contents, request.run);
    if (contents.processes.empty())
      throw Error("there is no run " + request.run +
                  "; `contextune logs` names those that are there");
    write_page(request.file, page_of(page_data(contents)), request.force);
    print_bad_lines(contents);
    if (request.file != "-") std::cout << request.file << std::endl;
    return std::cout ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << "contextune report: " << error.what() << "\n";
    return 1;
  }
}

}  // namespace contextune::cli
