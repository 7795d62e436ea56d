#include "store/update.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <contextune/error.hpp>

#include "store/entry_file.hpp"
#include "store/entry_json.hpp"
#include "store/entry_size.hpp"
#include "store/identity.hpp"

namespace contextune::store {
namespace {

std::string aside_text(const std::string& problem, const std::string& path) {
  return problem + "; the file is kept as " + path;
}

// A text is written only if it can be read: the next process would find a time below zero, and set
// aside all that the file holds.
std::string checked_text(const Entry& entry, const std::string& path) {
  std::string text = to_text(entry);
  try {
    static_cast<void>(parse_entry(text));
  } catch (const Error& error) {
    throw Error(path + ": the winners cannot be stored: " + error.what());
  }
  return text;
}

}  // namespace

UpdateNotes update_entry(const UpdateTarget& target, const std::function<void(Entry&)>& change) {
  const EntryPlace place = place_of(target.kind, target.name, target.hardware);
  const Folder folder = Folder::create(target.folder).create_inner(place.folder);
  EntryLock lock(folder, place.file, target.deadline);
  // Its files were created in the folder just now: where a network file system keeps what a folder
  // holds for a while, it has asked again.
  EntryFile file = read_entry_file(folder, place.file, Trust::Own);
  UpdateNotes notes;
  if (file.state == FileState::Damaged) {
    notes.damaged = aside_text(file.problem, set_aside(folder, place.file));
    file = {};
  }
  if (file.state == FileState::Missing) {
    file.entry.kind = target.kind;
    file.entry.name = target.name;
    file.entry.hardware = normalised(target.hardware);
  } else if (file.state != FileState::Good) {
    throw Error(file.problem + "; it is left alone, and nothing is stored in its place");
  }
  change(file.entry);
  const std::string path = folder.path(place.file);
  const std::string dropped = shrink(file.entry, max_file_bytes);
  if (!dropped.empty())
    notes.dropped = path + ": had become larger than " + std::to_string(max_file_bytes >> 20U) +
                    " MiB; contextune dropped " + dropped;
  lock.replace(checked_text(file.entry, path));
  return notes;
}

std::string set_damaged_aside(const Folder& folder, const std::string& file, Deadline deadline) {
  const EntryLock lock(folder, file, deadline);
  const EntryFile again = read_entry_file(folder, file, Trust::Own);
  if (again.state != FileState::Damaged) return {};
  return aside_text(again.problem, set_aside(folder, file));
}

void remove_entry(const std::string& folder, const std::string& inner, const std::string& file,
                  Deadline deadline) {
  const auto root = Folder::open(folder, Trust::Own);
  const auto opened = root ? root->open_inner(inner, Trust::Own) : std::nullopt;
  if (!opened) throw Error(folder + '/' + inner + ": is gone");
  {
    EntryLock lock(*opened, file, deadline);
    lock.remove();
  }
  (void)::unlinkat(root->number(), inner.c_str(), AT_REMOVEDIR);  // only if nothing is in it
}

}  // namespace contextune::store
