#pragma once

#include "cli/words/command_line.hpp"

/// The subcommands. Each does what a request asks for and returns the exit status.
namespace contextune::cli {

/// Runs a program with contextune in it and ends this process as the program ended; returns only if
/// the program could not be started.
[[nodiscard]] int answer(const RunRequest& request);
/// Prints what rank logs hold.
[[nodiscard]] int answer(const LogsRequest& request);
/// Writes what rank logs hold as one page for a browser.
[[nodiscard]] int answer(const ReportRequest& request);
/// Serves that page while the logs grow, until SIGINT or SIGTERM.
[[nodiscard]] int answer(const FollowRequest& request);
/// Prints what will work here and what will not, and why.
[[nodiscard]] int answer(const DoctorRequest& request);
/// Builds a source of variants.
[[nodiscard]] int answer(const BuildRequest& request);
/// Lists the kernels in files.
[[nodiscard]] int answer(const KernelsRequest& request);
/// Looks at stored winners, or changes what is stored.
[[nodiscard]] int answer(const StoreRequest& request);
/// Compares two runs, or two stores.
[[nodiscard]] int answer(const CompareRequest& request);
/// Prints the script with which a shell completes this command's words.
[[nodiscard]] int answer(const CompletionRequest& request);
/// Prints or writes manual pages.
[[nodiscard]] int answer(const ManualRequest& request);

}  // namespace contextune::cli
