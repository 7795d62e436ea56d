#pragma once

#include <string>

#include "store/entry.hpp"
#include "store/folder.hpp"

namespace contextune::store {

enum class FileState {
  Missing,
  Good,
  Damaged,  ///< can be set aside: no version can use anything of it
  Newer,    ///< of a later contextune: stays as it is
  Refused,  ///< not this user's, a link, not readable: stays as it is
};

/// The contents of a file of the store, or why they cannot be used.
struct EntryFile {
  FileState state = FileState::Missing;
  Entry entry;          ///< if it is good
  std::string problem;  ///< else: path, place in it, and what is wrong
};

/// Reads `file` and checks all of it, also that it is where its content belongs. Never throws but
/// for want of memory.
[[nodiscard]] EntryFile read_entry_file(const Folder& folder, const std::string& file, Trust trust);

/// Gives `file` the next free name of "<file>.unreadable-<n>", which takes no other file's place.
/// To be called by the holder of its lock. @return the path
/// @throws Error if it cannot be renamed
std::string set_aside(const Folder& folder, const std::string& file);

/// Whether a file was set aside.
[[nodiscard]] bool is_set_aside(std::string_view name);

}  // namespace contextune::store
