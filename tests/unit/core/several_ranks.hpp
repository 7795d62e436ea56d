#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "catch.hpp"
#include "core/agreement/batch_planner.hpp"
#include "core/agreement/scoped_tuning.hpp"
#include "core/agreement/shared_tuning.hpp"
#include "fake_decisions.hpp"
#include "fake_program.hpp"
#include "recorder.hpp"

namespace contextune::tests {

/// Agreement among ranks of one process, step by step as the test wants it: nothing in it waits.
class Meeting {
 public:
  explicit Meeting(std::uint32_t num_ranks) : num_ranks_(num_ranks) {}

  /// From now on this rank takes part in nothing.
  void lose(std::uint32_t rank) {
    lost_.insert(rank);
    for (auto& [question, talk] : talks_)
      if (talk.verdict == Verdict::Open) abort(talk, "rank " + std::to_string(rank) + " was lost");
  }
  /// While set, the decision is made, and no rank gets to know.
  bool withhold = false;
  /// The coordinating rank has ended, after all that was decided so far.
  bool coordinator_ended = false;
  /// Whether a rank that asks for a verdict that was reached has to ask once more; never in wait().
  std::function<bool()> verdict_is_late;
  /// No verdict is heard by who waits for less than that: the coordinating rank stands still.
  double stands_still_seconds = 0;
  /// Not empty: why nothing is decided.
  std::string refusal;
  /// Decides, and then aborts all the same: a rank did not vote.
  std::set<std::uint64_t> unlucky_questions;
  [[nodiscard]] std::size_t num_decided() const { return num_decided_; }
  [[nodiscard]] std::size_t num_waits() const { return num_waits_; }

  class Seat final : public Coordinator {
   public:
    Seat(Meeting& meeting, std::uint32_t rank) : meeting_(meeting), rank_(rank) {}
    [[nodiscard]] std::uint32_t rank() const noexcept override { return rank_; }
    [[nodiscard]] std::uint32_t num_ranks() const noexcept override { return meeting_.num_ranks_; }
    void say(const Topic& topic, std::uint32_t, Payload part, double) noexcept override {
      meeting_.say(topic, rank_, std::move(part));
    }
    [[nodiscard]] Agreement poll(const Topic& topic) noexcept override {
      return meeting_.poll(topic, rank_);
    }
    [[nodiscard]] Agreement wait(const Topic& topic, double seconds) noexcept override {
      ++meeting_.num_waits_;
      if (seconds < meeting_.stands_still_seconds) return {};
      const bool held = std::exchange(meeting_.withhold, false);
      Agreement agreement = meeting_.poll(topic, rank_, true);
      meeting_.withhold = held;
      return agreement;
    }
    void withdraw(const Topic& topic, std::string why) noexcept override {
      Talk& talk = meeting_.talks_[topic.question];
      if (talk.verdict == Verdict::Open) meeting_.abort(talk, why);
    }
    [[nodiscard]] std::string lost() const override {
      if (meeting_.coordinator_ended) return "rank 0 has ended";
      return meeting_.lost_.contains(rank_) ? "this rank was lost" : "";
    }

   private:
    Meeting& meeting_;
    std::uint32_t rank_;
  };

 private:
  struct Talk {
    std::map<std::uint32_t, Payload> said;
    Verdict verdict = Verdict::Open;
    Payload decision;
    std::string why;
  };
  void abort(Talk& talk, const std::string& why) {
    talk.verdict = Verdict::Aborted;
    talk.why = why;
  }
  void say(const Topic& topic, std::uint32_t rank, Payload part) {
    Talk& talk = talks_[topic.question];
    if (talk.verdict != Verdict::Open) return;
    if (!lost_.empty()) return abort(talk, "a rank was lost");
    talk.said[rank] = std::move(part);
    if (talk.said.size() < topic.ranks.size()) return;
    if (!refusal.empty()) return abort(talk, refusal);
    std::vector<Payload> all;
    for (auto& [who, what] : talk.said) all.push_back(what);
    talk.decision = planners_.decide(topic, all, talk.why);
    ++num_decided_;
    if (unlucky_questions.contains(topic.question)) return abort(talk, "a rank did not vote");
    talk.verdict = talk.decision.empty() ? Verdict::Aborted : Verdict::Committed;
  }
  Agreement poll(const Topic& topic, std::uint32_t rank, bool waits = false) {
    Agreement agreement;
    const auto at = talks_.find(topic.question);
    if (verdict_is_late && !waits && verdict_is_late()) return agreement;
    if (at == talks_.end() || withhold) return agreement;
    // What was committed before, its peers tell it.
    if (lost_.contains(rank) && at->second.verdict != Verdict::Committed) {
      agreement.verdict = Verdict::Aborted;
      agreement.why = "this rank was lost";
      return agreement;
    }
    agreement.verdict = at->second.verdict;
    agreement.decision = at->second.decision;
    agreement.why = at->second.why;
    return agreement;
  }

  std::uint32_t num_ranks_;
  std::map<std::uint64_t, Talk> talks_;
  std::set<std::uint32_t> lost_;
  GroupPlanners planners_;
  std::size_t num_decided_ = 0;
  std::size_t num_waits_ = 0;
};

/// Keeps what was agreed on as well.
class RankRecorder : public Recorder {
 public:
  void sync(const SyncEvent& event) override { syncs.push_back(event); }
  std::vector<SyncEvent> syncs;
};

/// A FakeProgram that is one rank: its collectives run what its decisions say.
class FakeRank final : public FakeProgram {
 public:
  FakeRank(Meeting& meeting, std::uint32_t rank, std::uint32_t num_ranks,
           const TuningOptions& options, Scope scope = Scope::Global)
      : seat(meeting, rank),
        made(scope != Scope::Global
                 ? std::unique_ptr<RegionTuning>(std::make_unique<ScopedTuning>(
                       options, settings(num_ranks), seat, recorder, scope))
                 : std::make_unique<SharedTuning>(options, settings(num_ranks), seat, recorder)),
        tuning(*made),
        decisions(tuning, num_ranks) {
    gap = 1e-6;
    (void)tuning.ranks().keep_in_step(decisions);
  }

  static SharedTuningSettings settings(std::uint32_t num_ranks) {
    SharedTuningSettings settings;
    settings.group = 7;
    for (std::uint32_t rank = 0; rank < num_ranks; ++rank) settings.ranks.push_back(rank);
    return settings;
  }

  /// One entry of a program that runs on (`live`), or of a body that is repeated until tuned.
  /// False: it was no pass.
  bool entry(bool live) {
    for (; live && !tuning.ranks().settle(TuningRanks::Due::Entry, now); now += 1) ++awaited;
    const PassPlan plan = FakeProgram::entry(live);
    waiting = plan.waiting;
    return live || plan.counted;
  }

  Meeting::Seat seat;
  RankRecorder recorder;
  std::unique_ptr<RegionTuning> made;
  RegionTuning& tuning;
  FakeDecisions decisions;
  std::uint64_t awaited = 0;   ///< times that an entry could not begin yet
  std::uint64_t off_plan = 0;  ///< passes in which a collective ran another config than planned
  std::map<std::uint64_t, std::map<std::string, std::uint32_t>> ran;  ///< by pass
  std::map<std::string, std::uint32_t> last;                          ///< in the last entry
  Waiting waiting = Waiting::Nothing;

 private:
  RegionTuning& tuned() override { return tuning; }
  std::uint32_t config_of(const Site& site, const PassPlan& plan, bool is_planned) override {
    const std::uint32_t due = configs_run[site.index];
    std::uint32_t config = due;
    for (std::uint32_t i = 0; i < site.decisions; ++i)
      config = decisions.decide(site.name, site.index, now);
    if (site.decisions > 0 && plan.counted && config != due) ++off_plan;
    if (is_planned && plan.counted && plan.measure != Measure::Nothing)
      ran[plan.number][site.name] = config;
    last[site.name] = config;
    return config;
  }
};
/// Ranks whose regions are tuned together.
class SeveralRanks {
 public:
  SeveralRanks(std::uint32_t num_ranks, const TuningOptions& options, Scope scope = Scope::Global)
      : meeting(num_ranks) {
    for (std::uint32_t rank = 0; rank < num_ranks; ++rank)
      ranks.push_back(std::make_unique<FakeRank>(meeting, rank, num_ranks, options, scope));
  }
  FakeRank& operator[](std::size_t rank) { return *ranks[rank]; }

  void add(const std::string& name, const std::vector<std::vector<double>>& seconds_by_rank) {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      FakeRank::Site site;
      site.name = name;
      site.seconds = seconds_by_rank[rank];
      ranks[rank]->sites.push_back(site);
    }
  }
  /// Bodies that are repeated until tuned: a rank with nothing to run lets the others go on.
  void run(std::size_t most_rounds = 100000) {
    for (std::size_t round = 0; round < most_rounds; ++round) {
      bool all = true;
      for (auto& rank : ranks) {
        if (rank->tuning.finished()) continue;
        all = false;
        if (!rank->entry(false) && stuck_is_lost && rank->waiting == Waiting::Ranks) {
          rank->tuning.ranks().await();
        }
      }
      if (all) return;
    }
    throw std::runtime_error("the tuning did not finish");
  }
  [[nodiscard]] bool all_finished() const {
    for (const auto& rank : ranks)
      if (!rank->tuning.finished()) return false;
    return true;
  }

  Meeting meeting;
  std::vector<std::unique_ptr<FakeRank>> ranks;
  bool stuck_is_lost = false;  ///< ranks wait for one another, and give up
};

/// Every pass that two ranks ran, they ran with the same configs.
inline void require_same_passes(SeveralRanks& ranks) {
  for (auto& one : ranks.ranks)
    for (auto& other : ranks.ranks)
      for (const auto& [pass, configs] : one->ran) {
        const auto at = other->ran.find(pass);
        if (at == other->ran.end()) continue;
        for (const auto& [site, config] : configs) {
          const auto there = at->second.find(site);
          if (there == at->second.end()) continue;
          INFO("pass " << pass << ", site " << site);
          REQUIRE(there->second == config);
        }
      }
}

}  // namespace contextune::tests
