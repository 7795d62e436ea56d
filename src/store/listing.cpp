#include "store/listing.hpp"

#include <fcntl.h>

#include <cerrno>
#include <filesystem>

#include <contextune/error.hpp>

#include "store/entry_json.hpp"
#include "store/identity.hpp"

namespace contextune::store {
namespace {

void list_folder(const Folder& root, const std::string& name, Trust trust, Listing& listing) {
  const auto folder = root.open_inner(name, trust);
  if (!folder) return;
  for (const std::string& file : folder->names()) {
    if (is_set_aside(file)) listing.set_aside.push_back(folder->path(file));
    if (!is_entry_file(file)) continue;
    EntryFile content = read_entry_file(*folder, file, trust);
    const Entry& entry = content.entry;
    const EntryPlace place = place_of(entry.kind, entry.name, entry.hardware);
    if (content.state == FileState::Good && place.folder != name) {
      content = {
          FileState::Damaged,
          {},
          folder->path(file) + ": its contents belong into " + place.folder + '/' + place.file};
    }
    if (content.state != FileState::Missing)
      listing.files.push_back({name, file, folder->path(file), std::move(content)});
  }
}

}  // namespace

Listing list_store(const std::string& folder, Trust trust) {
  const auto root = Folder::open(folder, trust);
  if (!root) throw Error(folder + ": there is no such store");
  Listing listing;
  for (const std::string& name : root->names()) {
    std::error_code error;
    if (!std::filesystem::is_directory(root->path(name), error)) continue;
    try {
      list_folder(*root, name, trust, listing);
    } catch (const Error& problem) {
      listing.problems.emplace_back(problem.what());
    }
  }
  return listing;
}

Entry read_loose_entry(const std::string& path) {
  const Descriptor file(AT_FDCWD, path, O_RDONLY | O_NONBLOCK);
  if (!file) refuse_with_errno(path, "cannot be opened", errno);
  std::string text;
  if (const int error = read_all(file.number(), max_file_bytes, text); error != 0)
    refuse_with_errno(path, "cannot be read", error);
  try {
    return parse_entry(text);
  } catch (const Error& error) {
    throw Error(path + ": " + error.what());
  }
}

}  // namespace contextune::store
