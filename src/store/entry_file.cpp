#include "store/entry_file.hpp"

#include <fcntl.h>

#include <cerrno>
#include <system_error>

#include <contextune/error.hpp>

#include "store/entry_json.hpp"
#include "store/identity.hpp"

namespace contextune::store {
namespace {

constexpr int most_set_aside = 1000;
constexpr std::string_view set_aside_mark = ".unreadable-";

// A file that was renamed over while it was read is gone on some network file systems.
constexpr int most_reads = 3;

EntryFile refused(FileState state, std::string problem) {
  return {state, {}, std::move(problem)};
}

// 0, or what `errno` was; ELOOP for a link.
int read_text(const Folder& folder, const std::string& file, Trust trust, std::string& text) {
  int error = ESTALE;
  for (int i = 0; error == ESTALE && i < most_reads; ++i) {
    const Descriptor opened = folder.open_file(file, O_RDONLY);
    if (!opened) {
      error = errno;
      continue;
    }
    struct stat status {};
    if (::fstat(opened.number(), &status) != 0) {
      error = errno;
      continue;
    }
    if (!S_ISREG(status.st_mode)) throw Error(folder.path(file) + ": is not a regular file");
    check_trust(folder.path(file), status, trust);
    error = read_all(opened.number(), max_file_bytes, text);
  }
  return error;
}

}  // namespace

EntryFile read_entry_file(const Folder& folder, const std::string& file, Trust trust) {
  const std::string path = folder.path(file);
  std::string text;
  try {
    const int error = read_text(folder, file, trust, text);
    if (error == ENOENT) return {};
    if (error == ELOOP) {
      return refused(FileState::Refused,
                     path + ": is a link, which is not followed; put the file itself there");
    }
    if (error != 0) {
      return refused(FileState::Refused,
                     path + ": cannot be read: " + std::generic_category().message(error));
    }
  } catch (const Error& error) {
    return refused(FileState::Refused, error.what());
  }
  try {
    EntryFile read{FileState::Good, parse_entry(text), {}};
    const EntryPlace place = place_of(read.entry.kind, read.entry.name, read.entry.hardware);
    if (place.file == file) return read;
    return refused(FileState::Damaged,
                   path + ": its contents belong into " + place.folder + '/' + place.file);
  } catch (const NewerFormat& error) {
    return refused(FileState::Newer, path + ": " + error.what());
  } catch (const Error& error) {
    return refused(FileState::Damaged, path + ": " + error.what());
  }
}

std::string set_aside(const Folder& folder, const std::string& file) {
  int error = EEXIST;
  for (int n = 1; error == EEXIST && n <= most_set_aside; ++n) {
    const std::string name = file + std::string(set_aside_mark) + std::to_string(n);
    error = folder.rename_to_new(file, name);
    if (error != 0) continue;
    folder.sync();
    return folder.path(name);
  }
  refuse_with_errno(folder.path(file), "cannot be set aside", error);
}

bool is_set_aside(std::string_view name) {
  const std::size_t mark = name.find(set_aside_mark);
  return mark != name.npos && is_entry_file(name.substr(0, mark));
}

}  // namespace contextune::store
