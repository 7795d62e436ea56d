#pragma once

#include <functional>
#include <string>

#include "store/entry.hpp"
#include "store/entry_lock.hpp"

namespace contextune::store {

/// Which entry of which store is to be changed, and until when it may take.
struct UpdateTarget {
  std::string folder;  ///< of the store
  StoredKind kind = StoredKind::Region;
  std::string name;
  Facts hardware;
  Deadline deadline;
};

/// Notes on an entry that was written.
struct UpdateNotes {
  std::string damaged;  ///< a damaged file was there, and is set aside; empty: there was none
  std::string dropped;  ///< it had become too large, and this is no more in it; empty: it had not
};

/// Reads the entry, lets `change` change it and writes it, while nobody else does; creates what is
/// missing. Once this returns it is durable. A damaged file is set aside first.
/// @throws Error if nothing was written: a newer or foreign file, no space, no permission, deadline
UpdateNotes update_entry(const UpdateTarget& target, const std::function<void(Entry&)>& change);

/// Sets a damaged file aside, if it still is damaged once it is locked. @return what to say of it
/// @throws Error if it is left alone, and why
std::string set_damaged_aside(const Folder& folder, const std::string& file, Deadline deadline);

/// Removes `file` of the folder `inner` of a store, its lock, and the folder if that was all.
/// @throws Error if it is there afterwards
void remove_entry(const std::string& folder, const std::string& inner, const std::string& file,
                  Deadline deadline);

}  // namespace contextune::store
