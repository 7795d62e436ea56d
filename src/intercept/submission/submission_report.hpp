#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/submission/found_region.hpp"
#include "core/submission/submission_search.hpp"
#include "intercept/host/event_log.hpp"
#include "intercept/submission/submission_in_use.hpp"

namespace contextune::intercept {

/// Lines of the rank log about how launches go out. Any thread; throws where nothing else is said.
class SubmissionReport {
 public:
  /// The end of a run.
  struct End {
    std::string_view state;  ///< as log::SubmissionEvent has it
    Submission shown;        ///< the way that counts
    SubmissionState found;   ///< nothing, if nothing was looked for
    bool is_open = false;    ///< the next run goes on from here
    int max_runs = 0;
  };

  SubmissionReport(EventLog& log, const SubmissionInUse& in_use) : log_(log), in_use_(in_use) {}

  /// @param text empty: the sentence of the vocabulary
  void fallback(FallbackReason reason, std::string_view text = {}) const noexcept;
  /// @param text that says what was found
  void region(const std::string& text) const;
  /// @param seconds since the first launch
  void step(const SubmissionStep& step, double seconds) const;
  /// @param gains of the pairs that show it, as far as they are known
  void verdict(const SubmissionVerdict& verdict, std::vector<double> gains) const;
  void end(const End& end) const;

 private:
  EventLog& log_;
  const SubmissionInUse& in_use_;
};

}  // namespace contextune::intercept
