#include "cli/words/commands.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <contextune/error.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "cli/setup/environment.hpp"
#include "cli/store/store_diff.hpp"
#include "cli/store/store_export.hpp"
#include "cli/store/store_folder.hpp"
#include "cli/store/store_text.hpp"
#include "cli/words/text.hpp"
#include "log/logfmt.hpp"
#include "store/listing.hpp"
#include "store/merge.hpp"
#include "store/trial_journal.hpp"
#include "store/update.hpp"

namespace contextune::cli {
namespace {

using store::FileState;
using store::ListedFile;
using store::Listing;
using store::Trust;

constexpr std::chrono::seconds patience{10};  // for a file that a program is writing

std::string store_folder_of(const StoreRequest& request) {
  if (!request.cache_dir.empty()) return request.cache_dir;
  std::string folder = store_folder(Environment::of_this_process());
  if (folder.empty())
    throw Error(
        "neither CONTEXTUNE_CACHE_DIR, XDG_CACHE_HOME nor HOME says where the store is; "
        "give --cache-dir");
  return folder;
}

// Without control characters of a name that is in it.
void warn(const std::string& text) {
  std::cerr << "contextune store: " << log::printable(text) << "\n";
}

int warn_of_problems(const Listing& listing) {
  const std::vector<std::string> problems = problems_of(listing);
  for (const std::string& problem : problems) warn(problem);
  return problems.empty() ? 0 : 1;
}

// Those of that name, or the one with that file; others are nobody's to name.
std::vector<const ListedFile*> files_named(const Listing& listing, const std::string& name) {
  std::vector<const ListedFile*> found;
  for (const ListedFile& file : listing.files) {
    const bool good = file.content.state == FileState::Good;
    if (good && (file.content.entry.name == name || file.place() == name)) found.push_back(&file);
  }
  if (found.empty()) {
    (void)warn_of_problems(listing);
    throw Error("nothing is stored of '" + name + "'; `contextune store list` shows what is");
  }
  return found;
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::trunc | std::ios::binary);
  file << text;
  file.close();
  if (!file) throw Error("cannot write " + path + ": " + std::strerror(errno));
}

int list_entries(const StoreRequest& request, const std::string& folder) {
  const Listing listing = store::list_store(folder, Trust::Own);
  if (request.json) {
    std::cout << store_list_json(folder, listing);
  } else {
    std::cout << store_list_text(listing);
  }
  return warn_of_problems(listing);
}

int show_named(const StoreRequest& request, const std::string& folder) {
  const Listing listing = store::list_store(folder, Trust::Own);
  const auto files = files_named(listing, request.arguments[0]);
  if (request.json) {
    std::cout << entries_json(files);
    return 0;
  }
  for (const ListedFile* file : files)
    std::cout << (file == files.front() ? "" : "\n") << entry_text(*file, request.history);
  return 0;
}

int compare(const StoreRequest& request) {
  const std::string& a = request.arguments[0];
  const std::string& b = request.arguments[1];
  StoreComparison comparison;
  int status = 0;
  for (const std::string& one : request.arguments)
    if (!std::filesystem::exists(one)) throw Error(one + ": there is no such store");
  if (std::filesystem::is_directory(a) != std::filesystem::is_directory(b)) {
    throw Error("one of " + a + " and " + b + " is a folder and one is not; give two of a kind");
  }
  if (std::filesystem::is_directory(a)) {
    const Listing in_a = store::list_store(a, Trust::Anyone);
    const Listing in_b = store::list_store(b, Trust::Anyone);
    comparison = compare_stores(in_a, in_b);
    status = std::max(warn_of_problems(in_a), warn_of_problems(in_b));
  } else {
    compare_entries(store::read_loose_entry(a), store::read_loose_entry(b), a + " and " + b,
                    comparison);
  }
  std::cout << (request.json ? comparison_json(comparison) : comparison_text(comparison));
  return comparison.differences.empty() ? status : 1;
}

int merge_file(const ListedFile& file, const std::string& folder) {
  const store::Entry& entry = file.content.entry;
  store::MergeCount count;
  const store::UpdateNotes notes = store::update_entry(
      {folder, entry.kind, entry.name, entry.hardware, std::chrono::steady_clock::now() + patience},
      [&](store::Entry& into) { count = store::merge_entry(into, entry); });
  if (!notes.damaged.empty()) warn(notes.damaged);
  if (!notes.dropped.empty()) warn(notes.dropped);
  std::cout << stored_title(file) << ": " << count.added << " added, " << count.replaced
            << " newer than what was there, " << count.older << " older, " << count.same
            << " known\n";
  return notes.damaged.empty() && notes.dropped.empty() ? 0 : 1;
}

int merge_stores(const StoreRequest& request, const std::string& folder) {
  int status = 0;
  for (const std::string& source : request.arguments) {
    std::error_code error;
    if (std::filesystem::equivalent(source, folder, error))
      throw Error(source + " is the store itself");
    const Listing listing = store::list_store(source, Trust::Anyone);
    status = std::max(status, warn_of_problems(listing));
    for (const ListedFile& file : listing.files) {
      if (file.content.state != FileState::Good) continue;
      try {
        status = std::max(status, merge_file(file, folder));
      } catch (const Error& problem) {
        warn(problem.what());
        status = 1;
      }
    }
  }
  return status;
}

int check_store(const StoreRequest& request, const std::string& folder) {
  const Listing listing = store::list_store(folder, Trust::Own);
  const std::vector<std::string> problems = problems_of(listing);
  if (request.json) {
    std::cout << check_json(folder, listing);
    return problems.empty() ? 0 : 1;
  }
  for (const std::string& problem : problems) std::cout << log::printable(problem) << "\n";
  for (const std::string& path : listing.set_aside)
    std::cout << log::printable(path) << ": was set aside, and can be deleted\n";
  std::cout << count_text(listing.files.size(), "file", "files") << ", "
            << count_text(problems.size(), "problem", "problems") << "\n";
  return problems.empty() ? 0 : 1;
}

int remove_named(const StoreRequest& request, const std::string& folder) {
  const Listing listing = store::list_store(folder, Trust::Own);
  for (const ListedFile* file : files_named(listing, request.arguments[0])) {
    store::remove_entry(folder, file->folder, file->file,
                        std::chrono::steady_clock::now() + patience);
    std::cout << "removed " << stored_title(*file) << "\n" << std::flush;
  }
  return 0;
}

int write_export(const StoreRequest& request, const std::string& folder) {
  const Listing listing = store::list_store(folder, Trust::Own);
  const auto files = files_named(listing, request.arguments[0]);
  if (files.size() > 1) {
    std::string places;
    for (const ListedFile* file : files) places += (places.empty() ? "" : ", ") + file->place();
    throw Error("'" + request.arguments[0] +
                "' was tuned on several kinds of hardware; give one of " + places);
  }
  const store::Entry& entry = files.front()->content.entry;
  std::size_t count = 0;
  if (!request.t4.empty()) {
    const std::string text = t4_json(entry, request.site, count);
    if (count == 0) throw Error("there is no result to export; " + request.t4 + " is not written");
    write_file(request.t4, text);
    std::cout << count_text(count, "result", "results") << " in " << request.t4 << "\n";
    return 0;
  }
  std::size_t unknown = 0;
  const std::string text = stored_nccl_csv(entry, request.site, count, unknown);
  if (count == 0)
    throw Error("no collective is stored there; " + request.nccl_csv + " is not written");
  write_file(request.nccl_csv, text);
  std::cout << count_text(count, "row", "rows")
            << " for NCCL_TUNER_CONFIG_FILE=" << request.nccl_csv << "\n";
  if (unknown > 0) {
    warn(count_text(unknown, "collective keeps", "collectives keep") +
         " a default that the store does not know, and have no row");
  }
  return 0;
}

int tell_blamed(const StoreRequest& request, const std::string& folder) {
  if (request.forget) {
    const std::size_t count = store::forget_blamed(folder);
    std::cout << count_text(count, "config", "configs") << " may be tried again\n";
    return 0;
  }
  const std::vector<std::string> blamed = store::blamed_configs(folder);
  if (blamed.empty()) std::cout << "no config is blamed\n";
  for (const std::string& config : blamed) std::cout << log::printable(config) << "\n";
  return 0;
}

int act_on(const StoreRequest& request) {
  using enum StoreRequest::Action;
  switch (request.action) {
    case List:
      return list_entries(request, store_folder_of(request));
    case Show:
      return show_named(request, store_folder_of(request));
    case Diff:
      return compare(request);
    case Merge:
      return merge_stores(request, store_folder_of(request));
    case Check:
      return check_store(request, store_folder_of(request));
    case Remove:
      return remove_named(request, store_folder_of(request));
    case Export:
      return write_export(request, store_folder_of(request));
    case Blamed:
      return tell_blamed(request, store_folder_of(request));
  }
  return 2;
}

}  // namespace

int answer(const StoreRequest& request) {
  try {
    const int status = act_on(request);
    std::cout.flush();
    if (!std::cout) throw Error("cannot write the output");
    return status;
  } catch (const std::exception& error) {
    std::cout.flush();
    warn(error.what());
    return 1;
  }
}

}  // namespace contextune::cli
