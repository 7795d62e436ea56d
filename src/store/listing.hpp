#pragma once

#include <string>
#include <vector>

#include "store/entry_file.hpp"

namespace contextune::store {

/// A file of a store.
struct ListedFile {
  std::string folder;  ///< in the store
  std::string file;
  std::string path;
  EntryFile content;

  /// "decode/0123456789abcdef.json".
  [[nodiscard]] std::string place() const { return folder + '/' + file; }
};

/// All of a store, good or not; sorted by place.
struct Listing {
  std::vector<ListedFile> files;
  std::vector<std::string> set_aside;  ///< paths of damaged files that were kept
  std::vector<std::string> problems;   ///< of folders that could not be looked at
};

/// Changes nothing. @throws Error if there is no such folder, or it cannot be used
[[nodiscard]] Listing list_store(const std::string& folder, Trust trust);

/// Reads a file anywhere, whoever's it is; it may have any name. @throws Error that says why it
/// cannot be used
[[nodiscard]] Entry read_loose_entry(const std::string& path);

}  // namespace contextune::store
