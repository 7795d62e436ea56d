// A search as the threads of its program meet in it.
#include "intercept/tuner/search.hpp"

#include <stdlib.h>

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>

#include "catch.hpp"
#include "core/agreement/batch_planner.hpp"
#include "core/agreement/shared_tuning.hpp"
#include "intercept/host/clock.hpp"
#include "intercept/tuner/open_pass.hpp"
#include "intercept/tuner/search_sites.hpp"

using namespace contextune;
using namespace contextune::intercept;

namespace {

/// A rank 0 that says the same as this one, and stands still after the second vote, until it is
/// told to answer.
class StandsStill final : public Coordinator {
 public:
  [[nodiscard]] std::uint32_t rank() const noexcept override { return 1; }
  [[nodiscard]] std::uint32_t num_ranks() const noexcept override { return 2; }
  void say(const Topic& topic, std::uint32_t, Payload part, double) noexcept override {
    if (topic.question > 0) return;
    std::string why;
    first_.decision = planners_.decide(topic, std::vector{part, part}, why);
    first_.verdict = Verdict::Committed;
  }
  [[nodiscard]] Agreement poll(const Topic& topic) noexcept override {
    const std::lock_guard lock(mutex_);
    return topic.question > 0 ? answer() : first_;
  }
  [[nodiscard]] Agreement wait(const Topic&, double) noexcept override {
    std::unique_lock lock(mutex_);
    gave_up_ = !changed_.wait_for(lock, std::chrono::seconds(2), [&] { return answers_; });
    return answer();
  }
  void withdraw(const Topic&, std::string) noexcept override {
    const std::lock_guard lock(mutex_);
    withdrawn_ = true;
    changed_.notify_all();
  }
  [[nodiscard]] std::string lost() const override { return {}; }

  void await_withdrawal() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return withdrawn_; });
  }
  /// Whether somebody waited for it in vain.
  [[nodiscard]] bool gave_up() {
    const std::lock_guard lock(mutex_);
    return gave_up_;
  }
  void answer_now() {
    const std::lock_guard lock(mutex_);
    answers_ = true;
    changed_.notify_all();
  }

 private:
  [[nodiscard]] Agreement answer() const {
    Agreement agreement;
    if (answers_) agreement.verdict = Verdict::Aborted;
    agreement.why = "rank 0 did not vote";
    return agreement;
  }

  GroupPlanners planners_;
  Agreement first_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool answers_ = false;
  bool withdrawn_ = false;
  bool gave_up_ = false;
};

/// One collective, made once in every entry.
class OneStream final : public DecisionPort {
 public:
  [[nodiscard]] std::vector<DecisionStanding> standings() override {
    return {{0, 77, 2, 1, decisions, 0, true}};
  }
  void hold(std::span<const Limit>) override {}
  void release() override {}
  [[nodiscard]] std::string commit(const DecisionLease&) override { return {}; }

  std::atomic<std::uint64_t> decisions{0};
};

}  // namespace

TEST_CASE("While an entry waits for a verdict, no other thread of the program waits for it",
          "[search]") {
  char folder[] = "/tmp/contextune-search-XXXXXX";
  REQUIRE(mkdtemp(folder) != nullptr);
  {
    EventLog log({folder, 1, "", LogLevel::Info});
    Measurement measurement(TimerKind::Events, {}, log);
    ProcessStore nothing_stored(nullptr, {}, {}, log, {}, {});
    StandsStill others;
    OneStream stream;
    Search search(
        "step",
        [&](TuningObserver& observer, bool) {
          SharedTuningSettings settings;
          settings.ranks = {0, 1};
          return std::make_unique<SharedTuning>(TuningOptions{}, settings, others, observer);
        },
        RegionClock::Entry, Judging(), measurement, nothing_stored, log);
    REQUIRE(search.ranks().keep_in_step(stream));
    SiteSpec spec;
    spec.name = "all_reduce";
    spec.configs.resize(2);
    spec.collective = true;
    Site site;
    site.configs.resize(2);
    REQUIRE(search.sites().add(site, spec, {}, {}));

    std::thread entering([&] {
      for (int entry = 0; entry < 10; ++entry) {
        (void)search.begin(now_seconds());
        ++stream.decisions;
        search.end(now_seconds());
      }
    });
    others.await_withdrawal();
    // Any launch on this thread needs as much.
    search.pass().launched(search.pass().tag(0), 0, 1, 1);
    CHECK(search.figures().sites == 1);
    others.answer_now();
    entering.join();
    CHECK_FALSE(others.gave_up());
  }
  std::filesystem::remove_all(folder);
}
