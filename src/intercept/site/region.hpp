#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <contextune/config.hpp>
#include <contextune/key.hpp>

#include "core/trials/pruned_configs.hpp"
#include "core/trials/timer.hpp"
#include "core/value/fallback_reason.hpp"
#include "intercept/site/region_outcome.hpp"
#include "intercept/site/region_ranks.hpp"

namespace contextune::intercept {

class Site;

/// A call with configs that the in-process API tunes at one place of a program.
struct TunableSpec {
  std::string name;
  Key key;
  std::vector<Config> configs;    ///< 0 is the default
  bool region_objective = false;  ///< judged by the region's time, not by its own
  std::optional<int> n_warmup;    ///< absent: the region's
  std::optional<int> n_repeat;
  PrunedConfigs pruned;  ///< not among `configs`
  /// A call is any amount of work on any streams, and costs the time from its first start to its
  /// last end; else the sum of its launches.
  bool timed_as_span = false;
  std::vector<std::uint32_t> unusable;  ///< configs that cannot run here, or must not
  std::string build;                    ///< as SiteCode has it
  std::string declaration;              ///< the same
};

/// A named stretch of host execution whose GPU work is tuned together. Lives as long as the
/// process. Any thread may call anything here; nothing throws, and nothing waits for the GPU but
/// begin_pass.
///
/// Only one entry counts at a time: a second thread's work in the region meanwhile runs what is
/// settled and is not measured. The same thread entering again from inside is part of its outer
/// entry.
class Region {
 public:
  virtual ~Region() = default;
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  [[nodiscard]] virtual const std::string& name() const noexcept = 0;

  /// Whether the search is over: winners kept, or given up. Entries then cost next to nothing.
  [[nodiscard]] virtual bool finished() const noexcept = 0;

  /// `live`: the program enters and leaves; an entry is a pass if the schedule counts it.
  virtual void begin_entry() noexcept = 0;
  virtual void end_entry() noexcept = 0;

  /// `body`: true: run the body once, as a pass, then call end_pass. It waits for results that the
  /// next pass depends on (synchronising the GPU), and only then. False: nothing is left to be
  /// measured, or another thread is in the region; run the body once more between begin_entry and
  /// end_entry: that is the final pass, with the winners.
  [[nodiscard]] virtual bool begin_pass() noexcept { return false; }
  /// True: it was the final pass already, since all winners were stored and ran in it.
  virtual bool end_pass() noexcept { return false; }

  /// Each pass is a row of calls of one tunable, which is timed as a whole. Too late once a site is
  /// known.
  virtual void time_rows() {}

  /// Instead of end_pass, when the body was left early: ends the search, all sites keep their
  /// default. Restoring memory is the caller's.
  virtual void abandon_pass() noexcept {}

  /// Ends the search for that reason, a sentence: all sites keep their default. Between passes.
  virtual void give_up(FallbackReason /*reason*/, const std::string& /*text*/) noexcept {}

  /// How far it has come. Takes the search's lock. Where sites are searched one by one, only the
  /// state.
  [[nodiscard]] virtual RegionOutcome outcome() const {
    RegionOutcome outcome;
    if (finished()) outcome.state = RegionOutcome::State::Finished;
    return outcome;
  }

  /// Whether its body is run again for us, so that what a pass leaves is undone.
  [[nodiscard]] virtual bool is_repeated() const noexcept { return false; }
  /// The ranks that make its passes with this one.
  [[nodiscard]] virtual RegionRanks& ranks() noexcept {
    static RegionRanks none;
    return none;
  }

  /// The site of a tunable; the same name and key give the same site. Null when it cannot be tuned
  /// here (one config, too many sites, pinned search): run config 0. Worth keeping by the caller,
  /// this takes a lock; the site lives as long as the region.
  [[nodiscard]] virtual Site* tunable(const TunableSpec& /*spec*/) noexcept { return nullptr; }

 protected:
  Region() = default;
};

/// A call of a tunable, which tells the config to run. From construction to end, whatever this
/// thread launches is timed as its work and runs as written. On one thread; calls may be nested
/// (the innermost gets the work). Does nothing for a null site.
class TunableCall {
 public:
  /// Where the launches cannot be seen (Runtime::sees_launches), the work is taken to go to the
  /// legacy default stream.
  explicit TunableCall(Site* site) noexcept;
  /// Work that is nobody's: runs as written, is not timed, and becomes no site.
  struct Aside {};
  explicit TunableCall(Aside) noexcept;
  ~TunableCall() { end(true); }
  TunableCall(const TunableCall&) = delete;
  TunableCall& operator=(const TunableCall&) = delete;

  /// Index into the spec's configs.
  [[nodiscard]] std::uint32_t config() const noexcept { return config_; }

  /// Whether what is done in it is one piece of work: its collectives are then no sites.
  [[nodiscard]] bool is_span() const noexcept;
  [[nodiscard]] bool is_aside() const noexcept { return aside_; }

  /// Ends the call; further calls do nothing and answer false.
  /// @param launched false: the config could not be launched
  /// @param why the program's own words for that; may be empty
  /// @param calls how often the work was done; several only where it is timed as a whole
  /// @return true: launch the work once more with config 0, outside of any call, so that the
  ///         program's results stay right
  bool end(bool launched, std::string_view why = {}, std::uint32_t calls = 1) noexcept;

 private:
  friend struct TunableLaunch;
  Site* site_ = nullptr;
  TunableCall* outer_ = nullptr;
  /// Of the whole call, where launches cannot be seen; else the last that the entry need not be
  /// told of again. Null: none.
  StreamHandle stream_ = nullptr;
  LaunchTimer* timer_ = nullptr;  ///< told of the whole call, where launches cannot be seen
  std::uint64_t tag_ = 0;         ///< of the pass that it is part of
  std::uint32_t config_ = 0;
  bool open_ : 1 = false;
  bool watched_ : 1 = false;
  bool aside_ : 1 = false;
  bool in_transfer_ = false;   ///< a copy is being made, and the timer was told
  bool shows_copies_ = false;  ///< the frontend shows copies and fills because of it
};

}  // namespace contextune::intercept
