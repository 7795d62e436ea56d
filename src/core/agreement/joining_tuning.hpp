#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "core/agreement/companions.hpp"
#include "core/search/tuning.hpp"

namespace contextune {

/// The search in a region of which is not known from the start whether other ranks have to do with
/// it: that of this process alone until a collective shows up in it (or, where it is certain that
/// it has companions, an entry has shown what is in the region), and then, from an entry on and
/// from the beginning, that of all ranks which find() names. What was learnt alone is dropped.
///
/// Alone, collectives run their default: whatever they are told has to be told to all their ranks.
///
/// Threads as RegionTuning says. The observer must outlive it.
class JoiningTuning final : public RegionTuning {
 public:
  JoiningTuning(const TuningOptions& options, std::unique_ptr<CompanionSource> source,
                TuningObserver& observer);

  SiteIndex add_site(SiteSpec spec) override;
  [[nodiscard]] Key public_key(const Key& key) const override;
  void site_ready(SiteIndex site, std::span<const std::uint32_t> unusable = {}) override;
  void reject_config(SiteIndex site, std::uint32_t config, const std::string& detail,
                     Rejection why = Rejection::Wrong) override;
  [[nodiscard]] PassPlan begin_pass(PassId pass, double now, bool bounded = true) override;
  void end_pass(PassId pass, std::span<const SiteIndex> launched, std::span<const SiteIndex> failed,
                double now) override;
  void add_result(const PassResult& result, double now) override {
    inner_->add_result(result, now);
  }
  void charge(PassId pass, double seconds) override { inner_->charge(pass, seconds); }
  void lose_result(PassId pass, double now) override { inner_->lose_result(pass, now); }
  void skip_entries(std::uint64_t entries) override {
    entries_ += entries;
    inner_->skip_entries(entries);
  }
  [[nodiscard]] bool wants_results() const override { return inner_->wants_results(); }
  void overrun(double now) override { inner_->overrun(now); }
  void cut_short() override { inner_->cut_short(); }
  void spend(double seconds) override { inner_->spend(seconds); }
  [[nodiscard]] std::unique_ptr<Lockstep> lockstep() const override { return inner_->lockstep(); }
  [[nodiscard]] bool is_alone() const override {
    return joined_ ? inner_->is_alone() : is_limited_to_one_;
  }
  void await_ranks(const std::function<bool()>& interrupted = {}) override {
    inner_->await_ranks(interrupted);
  }
  void occupied(double seconds, const std::string& why) override { inner_->occupied(seconds, why); }
  void pause() override { inner_->pause(); }
  void leave(const std::string& why) override;
  void repeat_together(std::span<const std::uint32_t> ranks) override;
  void limit_to(std::span<const std::uint32_t> ranks) override {
    is_limited_to_one_ = ranks.size() == 1;
    source_->limit_to(ranks);
  }
  bool go_on_alone(const std::string& why) override { return inner_->go_on_alone(why); }
  [[nodiscard]] bool keep_in_step(DecisionPort& port) override;
  bool settle(double now) override { return inner_->settle(now); }
  bool settle_entry(double now) override { return inner_->settle_entry(now); }
  void explain_unfinished() override;
  [[nodiscard]] bool finished() const override {
    return !seeks_ && undecided_.empty() && inner_->finished();
  }
  [[nodiscard]] Stage stage() const override { return inner_->stage(); }
  [[nodiscard]] std::span<const std::uint32_t> winners() const override {
    return inner_->winners();
  }
  [[nodiscard]] std::uint64_t passes() const override { return inner_->passes(); }
  [[nodiscard]] std::uint64_t entries() const override { return entries_; }
  [[nodiscard]] double tuning_seconds() const override { return inner_->tuning_seconds(); }

 private:
  /// What a search that begins anew has to be told of a site.
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
