#include "cli/run/run_watch.hpp"

#include <contextune/error.hpp>
#include <filesystem>
#include <system_error>
#include <utility>

namespace contextune::cli {

RunWatch::RunWatch(std::string folder, std::string run)
    : folder_(std::move(folder)), run_(std::move(run)) {
  find_new_logs(true);
}

void RunWatch::poll() {
  find_new_logs(false);
  for (auto& [path, tail] : tails_) tail->poll();
}

void RunWatch::finish() {
  find_new_logs(false);
  for (auto& [path, tail] : tails_) tail->finish();
}

void RunWatch::find_new_logs(bool of_earlier_runs) {
  // A folder that is not there, or is no more, has nothing to say.
  std::error_code error;
  if (!std::filesystem::is_directory(folder_, error)) return;
  std::vector<std::string> paths;
  try {
    paths = log::find_rank_logs(folder_);
  } catch (const Error&) {
    return;
  }
  for (const std::string& path : paths) {
    if (tails_.contains(path)) continue;
    // Lines of other runs are told apart by their id; what is there already is only skipped to save
    // the time to read it.
    const auto size = std::filesystem::file_size(path, error);
    const std::uint64_t from = of_earlier_runs && !error ? size : 0;
    tails_.emplace(path, std::make_unique<log::LogTail>(
                             path,
                             [this](const log::Record& record) {
                               if (record.run != run_) return std::string();
                               ++num_lines_;
                               return report_.add(record);
                             },
                             from));
  }
}

}  // namespace contextune::cli
