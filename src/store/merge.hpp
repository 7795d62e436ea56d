#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "store/entry.hpp"

namespace contextune::store {

/// Puts what was tuned just now into `entry`. A site of the same name and key takes the place of
/// the old one. The old winner goes to the front of `replaced` if a tuning had ended with it.
/// Configs that were measured in the old site and are not in the new one stay behind the new
/// configs, if measured under the same software. Programs with other spaces share a site, and each
/// should find what it measured. Configs that were not tried are left out.
void add_tuning(Entry& entry, const Facts& software, const std::vector<StoredSite>& sites,
                const std::optional<StoredConfirm>& confirm, const std::string& tuned_at);

/// Counts the sites of the other entry by what merge_entry did with them.
struct MergeCount {
  std::size_t added = 0;     ///< were not known
  std::size_t replaced = 0;  ///< are newer; what was there is history
  std::size_t older = 0;     ///< are older, and went into the history
  std::size_t same = 0;      ///< were there already
};

/// Puts an entry of the same identity into `entry`. Between two sites of the same name and key the
/// one tuned later wins, `entry`'s if neither was, and the other's winner becomes history. A winner
/// of `other` that its own trial refutes is left out. Doing it again changes nothing.
[[nodiscard]] MergeCount merge_entry(Entry& entry, const Entry& other);

/// "block=256 per_sm=4", the same for equal configs in whatever order, and for no others.
[[nodiscard]] std::string canonical_text(const Config& config);

}  // namespace contextune::store
