#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "core/search/tuning.hpp"
#include "core/trials/timer.hpp"
#include "intercept/measuring/graph_work.hpp"
#include "log/tuning_log.hpp"

namespace contextune::intercept {

/// The launches of one pass, and the results that have come in about it. Not thread-safe.
class PassRecord {
 public:
  using Trials = std::vector<std::pair<SiteIndex, std::uint32_t>>;  ///< sites' configs

  struct SiteCount {
    std::uint32_t config = 0;
    std::uint32_t calls = 0;    ///< launches, or calls of a tunable
    std::uint32_t records = 0;  ///< that the timer owes for them
    std::uint32_t arrived = 0;
    std::uint32_t kernels = 0;  ///< of those, but of graphs and of calls that are timed as a span
    double seconds = 0;         ///< sum of what arrived, but of calls that are timed as a span
    bool failed = false;
    std::uint64_t connection_bytes = 0;  ///< above 0: more than it may take
    bool spoiled = false;                ///< what it took is no sample of its config
    bool mixed = false;                  ///< another config ran, at least in part
  };

  PassRecord() = default;
  PassRecord(PassId pass, Measure measure, std::span<const std::uint32_t> configs);

  PassId pass{};
  Measure measure = Measure::Nothing;
  bool counted = false;
  bool agreed = false;               ///< all ranks make it
  std::optional<log::TableRow> row;  ///< of the table that it is
  bool spoiled = false;
  bool span_open = false;
  bool is_probed = false;  ///< its span is a probe's, and no result
  ClockReading clock;
  Trials tried;  ///< configs not survived before

  void launched(SiteIndex site, std::uint32_t calls, std::uint32_t records);
  void failed(SiteIndex site);
  /// NCCL took so many bytes for what the site's config needs, which is more than it may.
  void took_too_much(SiteIndex site, std::uint64_t bytes) { count(site).connection_bytes = bytes; }
  /// Another config than was planned ran, at least in part: it is no sample of either.
  void run_another(SiteIndex site) { count(site).spoiled = count(site).mixed = true; }
  /// The site did what it does once only: neither its time nor the region's says what it takes.
  void hold_up(SiteIndex site) {
    count(site).spoiled = true;
    held_up_ = true;
  }
  [[nodiscard]] bool is_held_up() const noexcept { return held_up_; }
  /// A call begins whose cost is the time from the first start to the last end of its work, on
  /// whatever streams. Gives its slot; 0: there are too many, and its site has no sample.
  [[nodiscard]] std::uint16_t begin_call(SiteIndex site);
  /// A graph is about to be launched. Gives its slot; 0: there are too many.
  [[nodiscard]] std::uint16_t begin_graph(const std::shared_ptr<const GraphWork>& work);
  /// It was launched; as in Search.
  void graph_launched(std::uint16_t slot, const GraphWork& work, bool apart, std::uint32_t records);
  /// @param slot site plus one, or a graph's or call's; 0: no site's
  void arrived(std::uint16_t slot, const TimedWork& work);

  /// As planned, by site.
  [[nodiscard]] const std::vector<std::uint32_t>& configs() const noexcept { return configs_; }
  [[nodiscard]] bool complete() const noexcept { return arrived_ >= records_; }
  /// The share of the region's time in which none of its work ran, of what was timed by itself.
  [[nodiscard]] double idle_share() const noexcept;
  /// Whether a call made several launches, whose number its config may decide.
  [[nodiscard]] bool has_calls_of_several() const noexcept;
  [[nodiscard]] std::vector<SiteIndex> sites_launched() const;
  [[nodiscard]] std::vector<SiteIndex> sites_failed() const;
  /// Whether it ran one config, as far as is known.
  [[nodiscard]] bool has_run_one(SiteIndex site) const { return !sites_[site].mixed; }
  /// Those that took too much memory, which the region's time does not tell.
  [[nodiscard]] std::vector<SiteResult> sites_too_large() const;
  /// The result of a site whose calls were a row that took so long. Not above 0: that is not known.
  /// Absent: it made none, or is among sites_too_large().
  [[nodiscard]] std::optional<SiteResult> share_of_calls(SiteIndex site, double seconds) const;
  /// Sites that miss records are `Missing`. @param mean region time is the sites' mean, not the
  /// stretch from first start to last end
  [[nodiscard]] PassResult result(bool mean) const;

 private:
  /// A call that is timed as a span.
  struct CallSpan {
    SiteIndex site = no_site;
    double first_start = std::numeric_limits<double>::infinity();
    double last_end = -std::numeric_limits<double>::infinity();
  };

  SiteCount& count(SiteIndex site);
  /// The kernels of a graph launch have all arrived: to whom they belong.
  void share(const GraphRecord& graph);
  /// By site: what its calls took, each from first start to last end.
  [[nodiscard]] std::vector<double> span_seconds() const;

  std::vector<SiteCount> sites_;
  std::vector<GraphRecord> graphs_;
  std::vector<CallSpan> calls_;
  std::vector<std::uint32_t> configs_;
  std::uint64_t records_ = 0;
  std::uint64_t arrived_ = 0;
  bool held_up_ = false;
  double first_start_ = std::numeric_limits<double>::infinity();
  double last_end_ = 0;
  double busy_seconds_ = 0;  ///< sum of what arrived
};

}  // namespace contextune::intercept
