// For how long a rank waits for others that say nothing.
#include "catch.hpp"
#include "core/agreement/shared_tuning.hpp"
#include "core/coordination/lockstep.hpp"
#include "recorder.hpp"

namespace contextune::tests {
namespace {

/// Rank 0 cannot be reached: whoever waits does so for as long as he meant to.
class Unreachable final : public Coordinator {
 public:
  [[nodiscard]] std::uint32_t rank() const noexcept override { return 1; }
  [[nodiscard]] std::uint32_t num_ranks() const noexcept override { return 2; }
  void say(const Topic&, std::uint32_t, Payload, double) noexcept override {}
  [[nodiscard]] Agreement poll(const Topic&) noexcept override {
    Agreement agreement;
    if (withdrawn) agreement.verdict = Verdict::Aborted;
    return agreement;
  }
  [[nodiscard]] Agreement wait(const Topic& topic, double seconds) noexcept override {
    if (!withdrawn) waited_seconds += seconds;
    return poll(topic);
  }
  void withdraw(const Topic&, std::string) noexcept override { withdrawn = true; }
  [[nodiscard]] std::string lost() const override { return {}; }

  double waited_seconds = 0;
  bool withdrawn = false;
};

}  // namespace

TEST_CASE("a rank that rank 0 does not answer waits in a meeting as long as was said, no longer") {
  Unreachable others;
  Lockstep ranks(others, 1, 1, {0, 1}, 0.2);
  CHECK_FALSE(ranks.meet({}));
  CHECK(others.waited_seconds == 0.2);
}

TEST_CASE("a rank that rank 0 does not answer waits for a batch as long as was said, no longer") {
  Unreachable others;
  Recorder recorder;
  SharedTuningSettings settings;
  settings.ranks = {0, 1};
  settings.presync_timeout = 0.2;
  SharedTuning tuning({}, settings, others, recorder);
  SiteSpec site;
  site.name = "kernel";
  site.configs = {Config{{"n", 0}}, Config{{"n", 1}}};
  static_cast<void>(tuning.add_site(site));
  CHECK(tuning.begin_pass(next_pass(), 0, false).waiting == Waiting::Ranks);
  const bool interrupted = GENERATE(false, true);
  tuning.ranks().await(interrupted ? std::function<bool()>([] { return false; }) : nullptr);
  CHECK(others.waited_seconds == Approx(0.2));
  static_cast<void>(tuning.begin_pass(next_pass(), 1, false));
  CHECK(tuning.finished());
}

}  // namespace contextune::tests
