#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/trials/store.hpp"

/// The contents of one file of the store. Plain values.
namespace contextune::store {

/// Replaced winners that a site keeps, the latest first.
inline constexpr std::size_t most_replaced = 5;
/// Configs that a site keeps.
inline constexpr std::size_t most_trials = 16384;

/// A winner whose place was taken, without what else was tried then.
struct ReplacedWinner {
  Config winner;
  WinnerReason reason = WinnerReason::Fastest;
  double seconds = 0;
  double default_seconds = 0;
  std::string tuned_at;
  std::string software;  ///< key of Entry::software
};

struct EntrySite {
  /// `same_software` says nothing here.
  StoredSite site;
  std::string software;  ///< key of Entry::software
  std::vector<ReplacedWinner> replaced;
};

/// How the region fared when it was last tuned.
struct EntryConfirm {
  StoredConfirm figures;
  std::string tuned_at;
  std::string software;  ///< key of Entry::software
};

/// All that is known of one region, function or choice on one kind of hardware.
struct Entry {
  StoredKind kind = StoredKind::Region;
  std::string name;
  Facts hardware;  ///< normalised
  /// The software that sites were tuned under, by software_id().
  std::map<std::string, Facts> software;
  std::vector<EntrySite> sites;  ///< sorted; no two of the same name and key
  std::optional<EntryConfirm> confirm;
};

}  // namespace contextune::store
