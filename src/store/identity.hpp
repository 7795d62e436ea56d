#pragma once

#include <string>
#include <string_view>

#include "core/trials/store.hpp"
#include "store/entry.hpp"

namespace contextune::store {

/// Sorted by name, each name once (the first counts): facts that say the same are equal.
[[nodiscard]] Facts normalised(const Facts& facts);

/// Names software in a file: 16 hexadecimal digits, the same for facts in any order.
[[nodiscard]] std::string software_id(const Facts& software);

/// The file of an identity: `folder`/`file`. Software has no part in it.
struct EntryPlace {
  std::string folder;  ///< the name, made safe; different names may share one
  std::string file;    ///< 16 hexadecimal digits of kind, name and hardware, and ".json"

  [[nodiscard]] bool operator==(const EntryPlace&) const = default;
};
[[nodiscard]] EntryPlace place_of(StoredKind kind, const std::string& name, const Facts& hardware);

/// Whether a name may be that of a file of winners: 16 hexadecimal digits and ".json".
[[nodiscard]] bool is_entry_file(std::string_view name);

}  // namespace contextune::store
