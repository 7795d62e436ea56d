#include <unistd.h>

#include <contextune/error.hpp>
#include <filesystem>
#include <iostream>
#include <utility>

#include "cli/compare/comparison_text.hpp"
#include "cli/words/colour.hpp"
#include "cli/words/commands.hpp"
#include "cli/words/text.hpp"
#include "log/log_reader.hpp"
#include "log/logfmt.hpp"

namespace contextune::cli {
namespace {

constexpr std::size_t compared_width = 120;
constexpr int not_compared = 2;
constexpr std::size_t most_problems = 20;

/// What one side is read from.
struct Source {
  std::string path;
  std::string run;  ///< of a log; empty: the last one
};

bool exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

// FOLDER, or FOLDER:RUN where there is no file of that name.
Source source_of(const std::string& given, const std::string& run) {
  if (!run.empty() || exists(given)) return {given, run};
  const std::size_t colon = given.rfind(':');
  if (colon != std::string::npos && colon > 0 && exists(given.substr(0, colon)))
    return {given.substr(0, colon), given.substr(colon + 1)};
  throw Error(given + ": there is no such folder or file");
}

// Else it is a store, or a file of one.
bool is_log(const std::string& path) {
  if (!std::filesystem::is_directory(path)) return !path.ends_with(".json");
  if (!log::find_rank_logs(path).empty()) return true;
  const store::Listing listing = store::list_store(path, store::Trust::Anyone);
  if (listing.files.empty() && listing.problems.empty())
    throw Error(path + " holds neither rank logs (rank-<i>.log) nor stored winners");
  return false;
}

void add_bad_lines(const LogContents& contents, ComparedSide& side) {
  for (const log::BadLine& line : contents.bad_lines) side.problems.push_back(line.to_string());
}

ComparedSide read_log_side(const Source& source) {
  LogContents contents = read_logs(source.path);
  if (contents.num_records == 0) throw Error(source.path + ": no line of its logs can be read");
  select_run(contents, source.run);
  if (contents.processes.empty())
    throw Error(source.path + ": there is no run " + source.run + " in its logs");
  ComparedSide side = side_of_log(source.path, contents);
  add_bad_lines(contents, side);
  return side;
}

ComparedSide read_store_side(const std::string& path) {
  store::Listing listing;
  if (std::filesystem::is_directory(path)) {
    listing = store::list_store(path, store::Trust::Anyone);
  } else {
    store::ListedFile& file = listing.files.emplace_back();
    file.path = path;
    file.content = {store::FileState::Good, store::read_loose_entry(path), ""};
  }
  return side_of_store(path, listing);
}

ComparedSide read_side(const Source& source, bool as_log) {
  return as_log ? read_log_side(source) : read_store_side(source.path);
}

void tell_problems(const ComparedSide& side) {
  for (std::size_t i = 0; i < std::min(side.problems.size(), most_problems); ++i)
    std::cerr << "contextune compare: " << log::printable(side.problems[i]) << "\n";
  if (side.problems.size() > most_problems)
    std::cerr << "contextune compare: " << side.problems.size() - most_problems << " more\n";
}

int compare_both(const CompareRequest& request) {
  const Source in_a = source_of(request.a, request.run_a);
  const Source in_b = source_of(request.b.empty() ? request.a : request.b, request.run_b);
  const bool are_logs = is_log(in_a.path);
  if (is_log(in_b.path) != are_logs) {
    throw Error("one of " + in_a.path + " and " + in_b.path +
                " is of rank logs and one of a store; give two of a kind");
  }
  if (!are_logs && !(in_a.run + in_b.run).empty())
    throw Error("a store holds no runs; leave out " + in_a.run + in_b.run);
  const ComparedSide a = read_side(in_a, are_logs);
  const ComparedSide b = read_side(in_b, are_logs);
  const SideComparison comparison = compare_sides(a, b, request.margin);
  switch_colours(!request.json && has_colours(request.colour, STDOUT_FILENO));
  std::cout << (request.json ? side_comparison_json(comparison, a, b)
                             : side_comparison_text(comparison, a, b, compared_width));
  std::cout.flush();
  if (!std::cout) throw Error("cannot write the output");
  tell_problems(a);
  tell_problems(b);
  if (!request.fail_on_slower) return 0;
  if (comparison.is_empty()) {
    std::cerr << "contextune compare: nothing is in both, so nothing can be said\n";
    return not_compared;
  }
  return comparison.has_slower() ? 1 : 0;
}

}  // namespace

int answer(const CompareRequest& request) {
  try {
    return compare_both(request);
  } catch (const std::exception& error) {
    std::cerr << "contextune compare: " << log::printable(error.what()) << std::endl;
    return not_compared;
  }
}

}  // namespace contextune::cli
