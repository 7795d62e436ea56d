#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <contextune/config.hpp>
#include <contextune/options.hpp>

#include "core/trials/store.hpp"

namespace contextune {

/// The findings of an earlier tuning about a site, in the numbers that its configs have here.
struct StoredWinner {
  std::uint32_t config = 0;
  bool is_found = true;  ///< by an earlier run; else it is the default of a run that tries nothing
  /// It was found under other software, or was not confirmed or not compared. It has to be shown
  /// again to be right, and the region to be faster with it.
  bool needs_confirm = false;
  bool is_compared = false;  ///< with the default, under this software
  /// Configs that were not tried then: they are measured, beside this one and the default.
  std::vector<std::uint32_t> untried;
  double seconds = std::numeric_limits<double>::quiet_NaN();  ///< its cost then; NaN: not known
  double default_seconds = std::numeric_limits<double>::quiet_NaN();
  /// Names the hardware and software that are here now: what another rank stored counts for this
  /// one only where they are the same.
  std::uint64_t environment = 0;

  /// There is nothing to find out: it runs from the first launch on.
  [[nodiscard]] bool holds() const { return !needs_confirm && untried.empty(); }
  [[nodiscard]] bool has_to_try(std::uint32_t candidate) const {
    return candidate == 0 || candidate == config ||
           std::find(untried.begin(), untried.end(), candidate) != untried.end();
  }
};

/// How this run judges configs: the options of these names.
struct Judging {
  Selection selection = Selection::Median;
  std::string tolerance;
  double trial_timeout = 30;
  double cutoff = 3;
  bool confirm = true;
  std::uint64_t comm_memory = std::uint64_t{512} << 20U;
  /// Results of configs are compared with the default's, as in a replay.
  bool compares = false;
};
[[nodiscard]] Judging judging(const Options& options);

/// Whether the config's outcome then tells its outcome now. A measurement does, and so does a
/// launch that failed: it has to do with hardware, code and declaration, and nothing counts under
/// others. A config that was wrong, too slow or took too much memory counts as long as the terms
/// are no milder. Only the journal knows whether a config crashes, and it can be told to forget.
[[nodiscard]] bool counts_as_tried(const StoredTrial& trial, const StoredSite& of,
                                   const Judging& here);

/// How the winner's own trial ended, where that shows that it is none. Absent: it may be one.
[[nodiscard]] std::optional<TrialStatus> refutation(const StoredSite& stored);

/// Whether its winner is used where winners are compared first, and has not been.
[[nodiscard]] bool lacks_comparison(const StoredSite& stored, const Judging& here);

/// Whether its winner may compute something else than is tolerated now.
[[nodiscard]] bool is_loose(const StoredSite& stored, const Judging& here);

/// Absent where nothing was found out, or the winner is no config of the site any more. Terms that
/// are not known count as those here.
[[nodiscard]] std::optional<StoredWinner> stored_winner(const StoredSite& stored,
                                                        std::span<const Config> configs,
                                                        const Judging& here = {});

/// Whether configs of the same values mean the same under both declarations, each as StoredSite has
/// it: one may have words more, for configs that the other lacks. A declaration that is not known
/// counts as the same.
[[nodiscard]] bool is_same_declaration(std::string_view a, std::string_view b);

/// Whether its winner is its default, or nothing was found out but what does not work.
[[nodiscard]] bool keeps_default(const StoredSite& stored);

/// Whether there is something to find out about it, whatever configs it has here: it was only seen,
/// or a config of it was, or its winner has to be shown again. The journal's knowledge is left out.
[[nodiscard]] bool is_open(const StoredSite& stored, const Judging& here = {});

/// How ranks that store different things go on.
struct StoredVote {
  std::optional<StoredWinner> winner;  ///< for all of them; absent: the site is tuned
  bool split = false;                  ///< they did not store the same
};

/// A winner that all ranks have stored holds. Where they differ, the first rank's stored winner
/// does, if all are in the same environment.
/// @param ranks one place for each rank that has the site, in their order
[[nodiscard]] StoredVote vote_on_stored(std::span<const std::optional<StoredWinner>> ranks);

}  // namespace contextune
