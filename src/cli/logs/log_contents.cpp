#include "cli/logs/log_contents.hpp"

#include <algorithm>
#include <contextune/error.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>

#include "cli/words/text.hpp"

namespace contextune::cli {
namespace {

constexpr std::size_t most_shown_bad_lines = 20;

std::vector<std::string> files_of(const std::string& folder) {
  std::error_code error;
  if (std::filesystem::is_regular_file(folder, error)) return {folder};
  if (!std::filesystem::exists(folder, error)) {
    throw Error("there is no log folder " + folder +
                "; give the folder that the program ran with, or start it with `contextune run`");
  }
  std::vector<std::string> files = log::find_rank_logs(folder);
  if (files.empty()) throw Error(folder + " holds no rank-<i>.log");
  return files;
}

}  // namespace

std::string log_folder(const std::string& given) {
  if (!given.empty()) return given;
  const char* const variable = std::getenv("CONTEXTUNE_LOG_DIR");
  return variable != nullptr && *variable != '\0' ? variable : ".autotune_logs";
}

LogContents read_logs(const std::string& folder) {
  LogContents contents;
  contents.folder = folder;
  log::ReportBuilder builder;
  for (const std::string& file : files_of(folder)) {
    log::LogTail tail(file, [&](const log::Record& record) { return builder.add(record); });
    const int error = tail.finish();
    if (error != 0) contents.bad_lines.push_back({file, 0, std::strerror(error)});
    const auto& bad = tail.lines().bad_lines();
    contents.bad_lines.insert(contents.bad_lines.end(), bad.begin(), bad.end());
    contents.num_bad_lines += tail.lines().num_bad() + (error != 0 ? 1 : 0);
    contents.num_records += tail.lines().num_records();
  }
  contents.processes = builder.take_processes();
  return contents;
}

void select_run(LogContents& contents, const std::string& run) {
  if (run == "all") return;
  std::map<int, std::string> last;  // times in this form compare as texts
  for (const log::ProcessReport& process : contents.processes) {
    std::string& time = last[process.rank];
    time = std::max(time, process.first_time);
  }
  std::map<int, std::string> chosen;
  for (const log::ProcessReport& process : contents.processes) {
    if (process.first_time == last[process.rank]) chosen[process.rank] = process.run;
  }
  std::set<std::string> followed;
  for (const log::ProcessReport& process : contents.processes) {
    if (chosen[process.rank] != process.run) followed.insert(process.run);
  }
  std::set<std::string> others;
  std::erase_if(contents.processes, [&](const log::ProcessReport& process) {
    const bool wanted = run.empty() ? !followed.contains(process.run) : process.run == run;
    if (!wanted) others.insert(process.run);
    return !wanted;
  });
  contents.other_runs.assign(others.begin(), others.end());
}

void print_bad_lines(const LogContents& contents) {
  const std::size_t shown = std::min(contents.bad_lines.size(), most_shown_bad_lines);
  for (std::size_t i = 0; i < shown; ++i) {
    std::cerr << contents.bad_lines[i].to_string() << "\n";
  }
  if (contents.num_bad_lines > 0) {
    std::cerr << count_text(contents.num_bad_lines, "line", "lines")
              << " could not be read; the rest is complete\n";
  }
}

}  // namespace contextune::cli
