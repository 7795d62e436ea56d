#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/search/tuning.hpp"
#include "core/trials/pruned_configs.hpp"
#include "core/trials/tuning_observer.hpp"
#include "log/rank_log.hpp"

namespace contextune::log {

/// The facts of a launch when its site was found. All of them are for the reader.
struct SiteFacts {
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::uint32_t, 3> block{1, 1, 1};
  std::uint32_t shared_bytes = 0;
  int registers = 0;
  std::uint32_t launches = 1;          ///< so far
  std::string_view provider = "none";  ///< declared, attributes, tunable, collective or none
  std::string default_choice;  ///< what a collective's default was: "Ring Simple"; empty: not known
  PrunedConfigs pruned{};
  std::uint64_t table_passes = 0;  ///< that its part of the table takes at most; 0: none
};

/// A pass of a region's table. Those that all ranks agreed on are numbered apart from the others.
struct TableRow {
  std::uint64_t pass = 0;
  bool agreed = false;
  double began = 0;  ///< seconds on the steady clock; 0: not known
};

/// The config that a site was launched with in one pass.
struct SiteRun {
  SiteIndex site = 0;
  std::optional<std::uint32_t> config;  ///< absent: not one config throughout
  bool operator==(const SiteRun&) const = default;
};

/// Writes what one region's tuning reports to the rank log.
/// Not thread-safe: used by one Tuning, whose region serialises calls. The log must outlive it.
class TuningLog final : public TuningObserver {
 public:
  /// @param timer name of the clock of single launches, "cupti" or "events"
  TuningLog(RankLog& log, std::string region, std::string timer, bool simulated);

  /// Names the site that Tuning::add_site just returned, and writes its `site` line. no_site is
  /// ignored.
  void add_site(SiteIndex index, const SiteSpec& spec, const SiteFacts& facts);

  /// The tuning is of one site, where others of the region have tunings of their own: `confirm`
  /// lines name it.
  void set_site_alone() noexcept { is_site_alone_ = true; }

  /// A pass of the table has ended, in which these sites were launched, each once in the list.
  /// Passes in a row in which a site ran the same become one `passes` line, written when they are
  /// over.
  void ran(const TableRow& row, std::span<const SiteRun> runs);
  /// Nothing more of them is to come for now: writes what is not written yet.
  void end_runs();
  /// The region took so long in that pass, which has ended. Its trials are reported afterwards.
  void took(const TableRow& row, double region_seconds);

  /// The clock was changed in mid-tuning.
  void set_timer(std::string timer) { timer_ = std::move(timer); }

  void stage(Stage stage, std::uint32_t generation) override;
  void trial(const TrialEvent& event) override;
  void winner(const WinnerEvent& event) override;
  void confirm(const ConfirmEvent& event) override;
  void left_out(const LeftOutEvent& event) override;
  void sync(const SyncEvent& event) override;
  void fallback(FallbackReason reason, SiteIndex site, const std::string& text) override;

 private:
  struct Parameter {
    std::string field_name;
    std::string value;
  };
  /// A pass whose trials may still be reported.
  struct Pass {
    TableRow row;
    double region_seconds = 0;  ///< 0: not known
  };
  /// Passes in a row in which a site ran the same.
  struct Stretch {
    TableRow first;
    std::uint64_t last = 0;
    std::optional<std::uint32_t> config;
  };
  struct Site {
    std::string name;
    std::string key;
    std::vector<std::vector<Parameter>> configs;
    std::optional<Stretch> stretch;  ///< that is not written yet
  };

  void write_stretch(SiteIndex index);
  [[nodiscard]] Pass* find_pass(std::uint64_t pass, bool agreed);
  void append_site(std::vector<Field>& fields, SiteIndex index) const;
  void append_config(std::vector<Field>& fields, SiteIndex index, std::uint32_t config) const;
  void append_simulated(std::vector<Field>& fields) const;
  /// "block=256 per_sm=4", as readers of trial lines put it together.
  [[nodiscard]] std::string parameters_text(SiteIndex index, std::uint32_t config) const;

  RankLog& log_;
  std::string region_;
  std::string timer_;
  bool simulated_;
  bool is_site_alone_ = false;
  std::optional<std::chrono::steady_clock::time_point> first_stage_;  ///< when the tuning began
  double clocks_apart_;  ///< system time minus steady time, in seconds
  std::vector<Site> sites_;
  std::deque<Pass> passes_;           ///< the latest ones
  std::vector<WinnerEvent> unnamed_;  ///< of the site that is being added
};

}  // namespace contextune::log
