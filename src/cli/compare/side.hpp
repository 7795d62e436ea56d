#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/compare/change.hpp"
#include "cli/logs/log_contents.hpp"
#include "store/listing.hpp"

namespace contextune::cli {

/// The config that a site settled on.
struct ComparedWinner {
  std::string text;
  std::vector<std::pair<std::string, std::string>> parameters;
  bool is_default = false;
};

/// A site as one side knows it.
struct ComparedSite {
  std::string name;
  std::string key;
  /// The key without what another build or another process changes: matched where no key is the
  /// same.
  std::string loose_key;
  MeasuredTime settled;
  MeasuredTime by_default;
  std::optional<ComparedWinner> winner;  ///< absent: it is not decided
  bool ranks_differ = false;             ///< they have settled on different configs
};

/// What a confirmation says of a region, or of a site that is confirmed alone.
struct ComparedGain {
  std::string site;     ///< empty: the region
  std::string verdict;  ///< "kept", "reduced", "defaults", "skipped"
  MeasuredGain figures;
};

/// How the launches of a region that was found reach the driver.
struct ComparedLaunches {
  std::string launches;  ///< "chained gathered=16", "as written"
  std::string state;     ///< "settled", "open"
};

struct ComparedRegion {
  std::string kind;  ///< "region", "function", "choice"
  std::string name;
  std::string gpu;       ///< of a store's entry, whose name alone does not tell it
  std::string hardware;  ///< the same in full
  bool simulated = false;
  std::vector<ComparedSite> sites;
  std::vector<ComparedGain> gains;
  std::optional<ComparedLaunches> launches;
};

/// Where a side was measured, and with what: "gpu", "driver". Those that are not known are absent.
using SideFacts = std::vector<std::pair<std::string, std::string>>;

/// One of two things that are compared. A plain value.
struct ComparedSide {
  std::string where;              ///< as it was given
  std::vector<std::string> runs;  ///< of a log: ids
  std::string time;               ///< when it began, or was tuned last
  SideFacts facts;
  std::size_t num_ranks = 1;
  bool simulated = false;
  bool is_real = false;  ///< something in it is not simulated
  std::vector<ComparedRegion> regions;
  std::vector<std::string> problems;  ///< of reading it

  /// The value of the fact of that name, or the empty string.
  [[nodiscard]] std::string fact(const std::string& name) const;
};

/// A run of one rank or several. Of several, the slowest one's times count, as in their tuning.
/// @param contents what was read and selected
/// @throws Error if there is no process in it
[[nodiscard]] ComparedSide side_of_log(const std::string& where, const LogContents& contents);

/// A store, or one file of one.
[[nodiscard]] ComparedSide side_of_store(const std::string& where, const store::Listing& listing);

/// Where every site keeps its default, there was nothing to confirm, and nothing is gained.
void note_defaults(ComparedRegion& region);

/// "block=256" of a key's or a config's text, each value by its name.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> values_in(std::string_view text);

}  // namespace contextune::cli
