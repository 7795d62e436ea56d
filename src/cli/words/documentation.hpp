#pragma once

#include <string>
#include <vector>

/// The texts of --help, and the tables of OPTIONS.md and REASONS.md, which are made from the code.
namespace contextune::cli {

[[nodiscard]] std::string main_help();
[[nodiscard]] std::string run_help();
[[nodiscard]] std::string logs_help();
[[nodiscard]] std::string compare_help();
[[nodiscard]] std::string report_help();
[[nodiscard]] std::string doctor_help();
[[nodiscard]] std::string build_help();
[[nodiscard]] std::string kernels_help();
[[nodiscard]] std::string store_help();
[[nodiscard]] std::string completion_help();
[[nodiscard]] std::string manual_help();
[[nodiscard]] std::string version_text();

/// Every option: flag, variable, default, meaning.
[[nodiscard]] std::string options_markdown();

/// The table of REASONS.md: reason, meaning, cause, remedy.
[[nodiscard]] std::string reasons_markdown();

/// The same to be read on a terminal, of those named, or of all. @throws Error for one that there
/// is not
[[nodiscard]] std::string reasons_text(const std::vector<std::string>& words);

}  // namespace contextune::cli
