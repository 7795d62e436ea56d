#pragma once

#include <string>
#include <utility>

#include "intercept/host/event_log.hpp"
#include "intercept/site/process_store.hpp"
#include "intercept/tuner/missing_agreement.hpp"
#include "intercept/tuner/search_results.hpp"
#include "log/tuning_log.hpp"

namespace contextune::intercept {

/// The observers of one search's tuning, each of which hands on to the next. Not thread-safe: a
/// part of one search.
class SearchReports {
 public:
  /// @param timer as TuningLog has it
  /// @param is_site_alone as SearchResults has it
  SearchReports(EventLog& log, const std::string& region, const char* timer, ProcessStore& store,
                const StoredAs& as, Judging judging, bool is_site_alone)
      : log_(log.lines(), region, timer, log.simulated()),
        results_(store, region, as, std::move(judging), is_site_alone, log_),
        agreement_(results_) {
    if (is_site_alone) log_.set_site_alone();
  }
  SearchReports(const SearchReports&) = delete;
  SearchReports& operator=(const SearchReports&) = delete;

  /// Whom the tuning tells.
  [[nodiscard]] TuningObserver& first() noexcept { return agreement_; }

  [[nodiscard]] MissingAgreement& agreement() noexcept { return agreement_; }
  [[nodiscard]] SearchResults& results() noexcept { return results_; }
  [[nodiscard]] const SearchResults& results() const noexcept { return results_; }
  [[nodiscard]] log::TuningLog& log() noexcept { return log_; }

 private:
  log::TuningLog log_;
  SearchResults results_;
  MissingAgreement agreement_;
};

}  // namespace contextune::intercept
