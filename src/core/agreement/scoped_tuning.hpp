#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <contextune/options.hpp>

#include "core/agreement/shared_tuning.hpp"
#include "core/search/tuning.hpp"

namespace contextune {

/// The search in a region of which a part is decided by this rank alone.
///
/// With `scope = local` these are its kernels, whatever the others do; its collectives are decided
/// with all ranks together, once the kernels are through. Where the region is repeated for us and
/// has collectives, ranks have to repeat it alike. Then all of it is decided together, from the
/// first pass on, or the one in which the first collective came up.
///
/// With `scope = auto` all is decided together, until the ranks do not agree. From then on this
/// rank decides on its kernels by itself, and collectives keep what they had. That does not happen
/// where the region is repeated for us and waits for other ranks. Where this rank alone repeats it,
/// nobody is asked from the beginning.
///
/// Threads as RegionTuning says. The coordinator and the observer must outlive it.
class ScopedTuning final : public RegionTuning, private TuningRanks {
 public:
  ScopedTuning(const TuningOptions& options, SharedTuningSettings settings,
               Coordinator& coordinator, TuningObserver& observer, Scope scope);

  SiteIndex add_site(SiteSpec spec) override;
  [[nodiscard]] Key public_key(const Key& key) const override { return shared_.public_key(key); }
  void site_ready(SiteIndex site, std::span<const std::uint32_t> unusable = {}) override;
  void reject_config(SiteIndex site, std::uint32_t config, const std::string& detail,
                     Rejection why = Rejection::Wrong) override;
  [[nodiscard]] PassPlan begin_pass(PassId pass, double now, bool bounded = true) override;
  void skip_entries(std::uint64_t entries) override { shared_.skip_entries(entries); }
  void end_pass(PassId pass, std::span<const SiteIndex> launched, std::span<const SiteIndex> failed,
                double now) override;
  void add_result(const PassResult& result, double now) override;
  void spend(double seconds, std::optional<PassId> pass = std::nullopt) override;
  [[nodiscard]] bool wants_results() const override {
    return !in_shared_ || shared_.wants_results();
  }
  void overrun(double now) override;
  void explain_unfinished() override;
  [[nodiscard]] bool finished() const override;
  [[nodiscard]] std::span<const std::uint32_t> winners() const override;
  [[nodiscard]] TuningProgress progress() const override;
  [[nodiscard]] TuningRanks& ranks() override { return *this; }

 private:
  [[nodiscard]] bool is_alone() override {
    return !together_ || is_to_part() || shared_.ranks().is_alone();
  }
  [[nodiscard]] std::unique_ptr<Lockstep> lockstep() override { return shared_.ranks().lockstep(); }
  void await(const std::function<bool()>& interrupted = {}) override {
    shared_.ranks().await(interrupted);
  }
  bool settle(Due due, double now) override { return shared_.ranks().settle(due, now); }
  void occupied(double seconds, const std::string& why) override {
    shared_.ranks().occupied(seconds, why);
  }
  void pause() override;
  void leave(const std::string& why) override { shared_.ranks().leave(why); }
  void cut_short() override { half_of(in_shared_).ranks().cut_short(); }
  bool go_on_alone(const std::string& why) override;
  [[nodiscard]] bool keep_in_step(DecisionPort& port) override;
  void repeat_together(std::span<const std::uint32_t> ranks) override;
  void limit_to(std::span<const std::uint32_t> ranks) override { shared_.ranks().limit_to(ranks); }

  /// Either of the two searches, which have sites under numbers of their own.
  struct Half {
    std::vector<SiteIndex> outer;  ///< by number there
  };
  /// Tells what is reported by the numbers that the region knows.
  class Reports final : public TuningObserver {
   public:
    Reports(const Half& half, TuningObserver& to) : half_(half), to_(to) {}
    void stage(Stage stage, std::uint32_t generation) override { to_.stage(stage, generation); }
    void trial(const TrialEvent& event) override;
    void winner(const WinnerEvent& event) override;
    void confirm(const ConfirmEvent& event) override { to_.confirm(event); }
    void left_out(const LeftOutEvent& event) override;
    void sync(const SyncEvent& event) override { to_.sync(event); }
    void fallback(FallbackReason reason, SiteIndex site, const std::string& text) override;

   private:
    [[nodiscard]] SiteIndex outer(SiteIndex site) const;
    const Half& half_;
    TuningObserver& to_;
  };
  /// The same for decisions.
  class Decisions final : public DecisionPort {
   public:
    explicit Decisions(const ScopedTuning& of) : of_(of) {}
    [[nodiscard]] std::vector<DecisionStanding> standings() override;
    void hold(std::span<const Limit> limits) override;
    void release() override { port->release(); }
    [[nodiscard]] std::string commit(const DecisionLease& lease) override;
    DecisionPort* port = nullptr;

   private:
    const ScopedTuning& of_;
  };
  struct Site {
    SiteSpec spec;
    bool shared = false;
    SiteIndex inner = no_site;
    std::vector<std::uint32_t> unusable;
    std::map<std::uint32_t, Rejection> wrong;
  };

  [[nodiscard]] RegionTuning& half_of(bool shared);
  SiteIndex add_to_half(const SiteSpec& spec, SiteIndex outer, bool shared);
  void decide_together();
  void move_to_half(SiteIndex outer, bool shared);
  /// Whether it may be repeated by this rank alone.
  [[nodiscard]] bool may_part() const;
  /// The ranks have not agreed, and this one has not gone on by itself yet.
  [[nodiscard]] bool is_to_part() const { return !parted_ && shared_.has_failed() && may_part(); }
  void part();
  [[nodiscard]] std::string outcome() const;
  [[nodiscard]] static SharedTuningSettings with_outcome(SharedTuningSettings settings,
                                                         const ScopedTuning& of);
  [[nodiscard]] std::vector<SiteIndex> inner_of(std::span<const SiteIndex> outer) const;

  Half local_half_;
  Half shared_half_;
  Reports local_reports_;
  Reports shared_reports_;
  Tuning local_;
  SharedTuning shared_;
  Decisions decisions_;
  std::vector<Site> sites_;
  const Scope scope_;
  bool repeated_ = false;  ///< the region's entries are made for us
  bool together_;
  bool parted_ = false;
  bool waits_for_ranks_ = false;  ///< what is done in it does
  bool shared_begun_ = false;
  bool in_shared_ = false;  ///< whose the entry is
  std::vector<std::uint32_t> plan_;
  mutable std::vector<std::uint32_t> winners_;
};

}  // namespace contextune
