#include "core/search/tuning.hpp"

#include "core/search/tuning_engine.hpp"

namespace contextune {

TuningOptions tuning_options(const Options& options) {
  TuningOptions out;
  out.n_warmup = options.n_warmup;
  out.n_repeat = options.n_repeat;
  out.schedule = options.schedule;
  out.selection = options.selection;
  out.margin = options.margin;
  out.refine = options.refine;
  out.refine_candidates = options.refine_candidates;
  out.refine_rounds = options.refine_rounds;
  out.confirm = options.confirm;
  out.confirm_min_pairs = options.confirm_min_pairs;
  out.confirm_max_pairs = options.confirm_max_pairs;
  out.cutoff = options.cutoff;
  out.max_sites = static_cast<std::uint32_t>(options.max_sites);
  out.max_slowdown = options.max_slowdown;
  out.grace_seconds = 0.050;
  out.max_passes = static_cast<std::uint64_t>(options.max_passes);
  out.max_time = options.max_time;
  out.trial_timeout = options.trial_timeout;
  out.comm_memory = static_cast<std::uint64_t>(options.comm_memory);
  return out;
}

std::string_view to_string(Stage stage) {
  constexpr std::string_view words[] = {"table", "refine", "confirm", "finished"};
  return words[static_cast<std::size_t>(stage)];
}

std::string_view to_string(WinnerReason reason) {
  constexpr std::string_view words[] = {"fastest", "margin",  "only",       "pinned",
                                        "region",  "failed",  "no_samples", "dropped",
                                        "stored",  "nearest", "so_far"};
  return words[static_cast<std::size_t>(reason)];
}

std::string_view to_string(ConfirmVerdict verdict) {
  constexpr std::string_view words[] = {"kept", "reduced", "defaults", "skipped"};
  return words[static_cast<std::size_t>(verdict)];
}

Tuning::Tuning(const TuningOptions& options, TuningObserver* observer)
    : engine_(std::make_unique<Engine>(options, *observer)) {}
Tuning::~Tuning() = default;

SiteIndex Tuning::add_site(SiteSpec spec) {
  return engine_->add_site(std::move(spec));
}
void Tuning::site_ready(SiteIndex site, std::span<const std::uint32_t> unusable) {
  engine_->site_ready(site, unusable);
}
void Tuning::site_stored(SiteIndex site, const StoredWinner& stored) {
  engine_->site_stored(site, stored);
}
void Tuning::site_suspected(SiteIndex site, const Suspicions& suspicions) {
  engine_->site_suspected(site, suspicions);
}
void Tuning::reject_config(SiteIndex site, std::uint32_t config, const std::string& detail,
                           Rejection why) {
  engine_->reject_config(site, config, detail, why);
}
void Tuning::keep_default(SiteIndex site) {
  engine_->keep_default(site);
}
PassPlan Tuning::begin_pass(PassId pass, double now, bool bounded) {
  return engine_->begin_pass(pass, now, bounded);
}
void Tuning::hold_passes(bool held) {
  engine_->hold_passes(held);
}
void Tuning::end_pass(PassId pass, std::span<const SiteIndex> launched,
                      std::span<const SiteIndex> failed, double now) {
  engine_->end_pass(pass, launched, failed, now);
}
void Tuning::add_result(const PassResult& result, double now) {
  engine_->add_result(result, now);
}
void Tuning::overrun(double now) {
  engine_->overrun(now);
}
void Tuning::spend(double seconds, std::optional<PassId> pass) {
  engine_->spend(seconds, pass);
}
bool Tuning::finished() const {
  return engine_->finished();
}
std::span<const std::uint32_t> Tuning::winners() const {
  return engine_->winners();
}
std::size_t Tuning::num_sites() const {
  return engine_->sites().size();
}
TuningProgress Tuning::progress() const {
  return engine_->progress();
}

}  // namespace contextune
