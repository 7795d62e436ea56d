#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/agreement/companions.hpp"
#include "core/search/tuning.hpp"

namespace contextune {

/// The search in a region of which it is not known at first whether other ranks have to do with it.
/// It begins as the search of this process alone. That ends when a collective shows up in the
/// region or, where companions are certain, when an entry has shown what is in it. From an entry
/// on, and from the beginning, it is then the search of all ranks that find() names. Results that
/// were learnt alone are dropped.
///
/// Alone, collectives run their default: whatever they are told has to be told to all their ranks.
///
/// Threads as RegionTuning says. The observer must outlive it.
class JoiningTuning final : public RegionTuning, private TuningRanks {
 public:
  JoiningTuning(const TuningOptions& options, std::unique_ptr<CompanionSource> source,
                TuningObserver& observer);

  SiteIndex add_site(SiteSpec spec) override;
  [[nodiscard]] Key public_key(const Key& key) const override;
  void site_ready(SiteIndex site, std::span<const std::uint32_t> unusable = {}) override;
  void reject_config(SiteIndex site, std::uint32_t config, const std::string& detail,
                     Rejection why = Rejection::Wrong) override;
  [[nodiscard]] PassPlan begin_pass(PassId pass, double now, bool bounded = true) override;
  void hold_passes(bool held) override { inner_->hold_passes(held); }
  void skip_entries(std::uint64_t entries) override {
    entries_ += entries;
    inner_->skip_entries(entries);
  }
  void end_pass(PassId pass, std::span<const SiteIndex> launched, std::span<const SiteIndex> failed,
                double now) override;
  void add_result(const PassResult& result, double now) override {
    inner_->add_result(result, now);
  }
  void spend(double seconds, std::optional<PassId> pass = std::nullopt) override {
    inner_->spend(seconds, pass);
  }
  [[nodiscard]] bool wants_results() const override { return inner_->wants_results(); }
  void overrun(double now) override { inner_->overrun(now); }
  void explain_unfinished() override;
  [[nodiscard]] bool finished() const override {
    return !seeks_ && undecided_.empty() && inner_->finished();
  }
  [[nodiscard]] std::span<const std::uint32_t> winners() const override {
    return inner_->winners();
  }
  [[nodiscard]] TuningProgress progress() const override {
    TuningProgress progress = inner_->progress();
    progress.entries = entries_;
    return progress;
  }
  [[nodiscard]] TuningRanks& ranks() override { return *this; }

 private:
  [[nodiscard]] bool is_alone() override {
    return joined_ ? inner_->ranks().is_alone() : is_limited_to_one_;
  }
  [[nodiscard]] std::unique_ptr<Lockstep> lockstep() override { return inner_->ranks().lockstep(); }
  void await(const std::function<bool()>& interrupted = {}) override {
    inner_->ranks().await(interrupted);
  }
  bool settle(Due due, double now) override { return inner_->ranks().settle(due, now); }
  void occupied(double seconds, const std::string& why) override {
    inner_->ranks().occupied(seconds, why);
  }
  void pause() override { inner_->ranks().pause(); }
  void leave(const std::string& why) override;
  void cut_short() override { inner_->ranks().cut_short(); }
  bool go_on_alone(const std::string& why) override { return inner_->ranks().go_on_alone(why); }
  [[nodiscard]] bool keep_in_step(DecisionPort& port) override;
  void repeat_together(std::span<const std::uint32_t> ranks) override;
  void limit_to(std::span<const std::uint32_t> ranks) override {
    is_limited_to_one_ = ranks.size() == 1;
    source_->limit_to(ranks);
  }

  /// The facts of a site that a search has to be told when it begins anew.
  struct Site {
    SiteSpec spec;
    std::vector<std::uint32_t> unusable;
    std::map<std::uint32_t, Rejection> wrong;
  };

  void join(Companions&& companions);
  [[nodiscard]] bool needs_companions() const;
  [[nodiscard]] PassPlan idle_entry(PassId pass, bool counted);

  const TuningOptions options_;
  const std::unique_ptr<CompanionSource> source_;
  TuningObserver& observer_;
  std::unique_ptr<RegionTuning> inner_;
  std::vector<Site> sites_;
  std::vector<SiteIndex> undecided_;  ///< collectives that came since find() was asked
  DecisionPort* port_ = nullptr;
  bool has_collectives_ = false;
  bool repeats_together_ = false;
  bool joined_ = false;
  bool is_limited_to_one_ = false;  ///< to this rank
  bool bounded_ = true;             ///< as begin_pass was told last
  bool seeks_ = false;              ///< its companions are not known yet
  bool left_ = false;
  bool said_ = false;  ///< that they were not found to the end
  std::uint64_t entries_ = 0;
  std::uint64_t with_collectives_ = 0;  ///< entries that ended after the first of them
  std::uint64_t sought_since_ = 0;      ///< entry; 0: not yet
};

}  // namespace contextune
