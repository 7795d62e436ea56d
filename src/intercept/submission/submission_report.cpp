#include "intercept/submission/submission_report.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/submission/submission_stored.hpp"
#include "core/submission/submission_text.hpp"
#include "intercept/submission/stored_submission.hpp"
#include "log/events.hpp"
#include "log/tuning_log.hpp"

namespace contextune::intercept {
namespace {

constexpr const char* region_name = StoredSubmission::region;
constexpr const char* site_name = StoredSubmission::site;

}  // namespace

void SubmissionReport::fallback(FallbackReason reason, std::string_view text) const noexcept {
  log_.fallback(reason, region_name, site_name, text);
}

void SubmissionReport::region(const std::string& text) const {
  log::write_found_region(log_.lines(), region_name, text);
}

void SubmissionReport::step(const SubmissionStep& step, double seconds) const {
  log::SearchStepEvent event;
  event.seconds = seconds;
  event.simulated = log_.simulated();
  switch (step.kind) {
    case SubmissionStep::Kind::Screen:
      event.stage = "screen";
      event.ways = step.screened.size();
      break;
    case SubmissionStep::Kind::Compare:
      event.stage = "compare";
      event.launches = text_of(step.candidate);
      event.against = text_of(step.against);
      event.pairs = step.pairs;
      break;
    case SubmissionStep::Kind::Settled:
      event.stage = "finished";
      break;
    case SubmissionStep::Kind::NumberKernels:
    case SubmissionStep::Kind::Blocked:
      return;
  }
  log::write_search_step(log_.lines(), region_name, event);
}

void SubmissionReport::verdict(const SubmissionVerdict& verdict, std::vector<double> gains) const {
  const bool kept = !verdict.winner.is_as_written();
  constexpr double not_measured = std::numeric_limits<double>::quiet_NaN();
  log::TuningLog lines(log_.lines(), region_name, "events", log_.simulated());
  SiteSpec site;
  site.name = site_name;
  site.configs = {config_of(Submission{})};
  if (kept) site.configs.push_back(config_of(verdict.winner));
  lines.add_site(0, site, {});
  WinnerEvent winner;
  winner.config = kept ? 1 : 0;
  winner.seconds = winner.default_seconds = not_measured;
  winner.reason = kept ? WinnerReason::Region : WinnerReason::Dropped;
  lines.winner(winner);
  ConfirmEvent confirm;
  confirm.verdict = kept ? ConfirmVerdict::Kept : ConfirmVerdict::Defaults;
  confirm.before_seconds = confirm.after_seconds = not_measured;
  confirm.gain = verdict.gain;
  confirm.bound = verdict.low;
  confirm.pairs = verdict.pairs;
  confirm.tries = 1;
  gains.resize(std::min(gains.size(), most_told_gains));
  confirm.gains = std::move(gains);
  lines.confirm(confirm);
}

void SubmissionReport::end(const End& end) const {
  const Submitter::Totals totals = in_use_.submitter().totals();
  const SplicedLoads::Totals loads = in_use_.loads().totals();
  const ChainedGraphs::Totals graphs = in_use_.graphs().totals();
  const int run = end.is_open ? std::max(1, end.found.runs) : 0;
  log::write_submission(log_.lines(), region_name,
                        {text_of(end.shown),
                         std::string(end.state),
                         run,
                         end.max_runs,
                         totals.chained,
                         totals.held,
                         totals.batches,
                         totals.late,
                         totals.graphs.launches,
                         totals.graphs.kernels,
                         totals.graphs.built,
                         graphs.graphs,
                         graphs.launches,
                         graphs.edges,
                         loads.images,
                         loads.kernels,
                         loads.left,
                         loads.unneeded,
                         loads.kept_bytes,
                         loads.seconds,
                         totals.graphs.bytes + graphs.bytes,
                         in_use_.submitter().names_of(end.shown.ordinary),
                         screened_text(end.found),
                         end.is_open ? std::string() : end.found.verdict.why,
                         log_.simulated()});
}

}  // namespace contextune::intercept
