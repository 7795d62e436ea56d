
#include "catch.hpp"
#include "core/agreement/joining_tuning.hpp"
#include "recorder.hpp"

using namespace contextune;

namespace {

/// Nobody says anything to anybody: what is asked stays open.
class SilentCoordinator final : public Coordinator {
 public:
  [[nodiscard]] std::uint32_t rank() const noexcept override { return 0; }
  [[nodiscard]] std::uint32_t num_ranks() const noexcept override { return 2; }
  void say(const Topic&, std::uint32_t, Payload, double) noexcept override { ++asked; }
  [[nodiscard]] Agreement poll(const Topic&) noexcept override { return {}; }
  [[nodiscard]] Agreement wait(const Topic&, double) noexcept override { return {}; }
  void withdraw(const Topic&, std::string) noexcept override {}
  [[nodiscard]] std::string lost() const override { return {}; }
  int asked = 0;
};

struct Answers {
  bool any = false;
  bool certain = false;
  Companions::State state = Companions::State::Alone;
  int questions = 0;
  int partings = 0;
  SilentCoordinator coordinator;
};

class FakeSource final : public CompanionSource {
 public:
  explicit FakeSource(Answers& answers) : answers_(answers) {}
  [[nodiscard]] bool may_be_any() override { return answers_.any; }
  [[nodiscard]] bool are_certain() override { return answers_.certain; }
  [[nodiscard]] Companions find(std::span<const DecisionStanding>, std::uint64_t, bool,
                                double) override {
    ++answers_.questions;
    Companions found;
    found.state = answers_.state;
    found.coordinator = &answers_.coordinator;
    found.settings.ranks = {0, 1};
    return found;
  }
  [[nodiscard]] Companions leave(std::span<const DecisionStanding> used, bool) override {
    ++answers_.partings;
    return find(used, 0, true, 0);
  }

 private:
  Answers& answers_;
};

SiteSpec site(const std::string& name, bool collective) {
  SiteSpec spec;
  spec.name = name;
  spec.configs = {Config{{"n", 0}}, Config{{"n", 1}}};
  spec.collective = collective;
  return spec;
}

struct Region {
  Answers answers;
  TuningObserver observer;
  JoiningTuning tuning{TuningOptions(), std::make_unique<FakeSource>(answers), observer};
  double now = 0;

  PassPlan enter() {
    const PassPlan plan = tuning.begin_pass(tests::next_pass(), now += 1);
    tuning.end_pass(plan.pass, {}, {}, now);
    return plan;
  }
};

}  // namespace

TEST_CASE("A region without collectives asks for no companions", "[joining]") {
  Region region;
  (void)region.tuning.add_site(site("kernel", false));
  for (int entry = 0; entry < 5; ++entry) CHECK(region.enter().counted);
  CHECK(region.answers.questions == 0);
  CHECK(region.answers.coordinator.asked == 0);
}

TEST_CASE("A rank that leaves while its companions are sought tells whoever has found it",
          "[joining]") {
  Region region;
  region.answers.any = true;
  region.answers.state = Companions::State::Sought;
  (void)region.enter();
  SECTION("and nobody where it has to do with none") {
    region.tuning.ranks().leave("it stops");
    CHECK(region.answers.partings == 0);
    return;
  }
  (void)region.tuning.add_site(site("collective", true));
  (void)region.enter();
  const bool is_found = GENERATE(true, false);
  if (is_found) region.answers.state = Companions::State::Known;
  region.tuning.ranks().leave("it stops");
  region.tuning.ranks().leave("it stops");
  CHECK(region.answers.partings == 1);
  CHECK(region.answers.coordinator.asked == (is_found ? 1 : 0));
}

TEST_CASE("Alone, a collective keeps its default and kernels are tuned", "[joining]") {
  Region region;
  const SiteIndex kernel = region.tuning.add_site(site("kernel", false));
  const SiteIndex collective = region.tuning.add_site(site("collective", true));
  bool kernel_was_tried = false;
  for (int entry = 0; entry < 40; ++entry) {
    const PassPlan plan = region.tuning.begin_pass(tests::next_pass(), region.now += 1);
    if (kernel < plan.configs.size()) kernel_was_tried |= plan.configs[kernel] != 0;
    if (collective < plan.configs.size()) CHECK(plan.configs[collective] == 0);
    const SiteIndex launched[] = {kernel, collective};
    region.tuning.end_pass(plan.pass, launched, {}, region.now);
    region.tuning.add_result({plan.pass, {{kernel, plan.configs[kernel], 1, 1e-6}}, 1e-6},
                             region.now);
  }
  CHECK(kernel_was_tried);
  CHECK(region.answers.questions > 0);
}

TEST_CASE("Where there may be others the first entry only shows what is there", "[joining]") {
  Region region;
  region.answers.any = true;
  const PassPlan plan = region.tuning.begin_pass(tests::next_pass(), 1);
  CHECK(plan.counted);
  CHECK(plan.measure == Measure::Nothing);
  CHECK(plan.configs.empty());
}

TEST_CASE("While companions are sought nothing is tried", "[joining]") {
  Region region;
  region.answers.state = Companions::State::Sought;
  (void)region.tuning.add_site(site("kernel", false));
  (void)region.tuning.add_site(site("collective", true));
  const PassPlan plan = region.enter();
  CHECK_FALSE(plan.counted);
  CHECK(plan.waiting == Waiting::Ranks);
  CHECK(plan.configs.empty());
  CHECK_FALSE(region.tuning.finished());
}

TEST_CASE("A body that has something in common with others is not repeated alone", "[joining]") {
  Region region;
  region.tuning.ranks().repeat_together({});
  (void)region.tuning.add_site(site("kernel", false));
  for (int entry = 0; entry < 5; ++entry)
    CHECK_FALSE(region.tuning.begin_pass(tests::next_pass(), region.now += 1, false).counted);
  CHECK(region.answers.questions == 5);
  region.answers.state = Companions::State::Known;
  CHECK(region.tuning.begin_pass(tests::next_pass(), region.now += 1, false).waiting ==
        Waiting::Ranks);
  CHECK(region.answers.coordinator.asked == 1);
}

TEST_CASE("What one rank alone repeats is tuned by it, and has no companions", "[joining]") {
  Region region;
  region.answers.any = region.answers.certain = true;
  region.tuning.ranks().repeat_together(std::array{0U});
  CHECK(region.tuning.ranks().is_alone());
  const SiteIndex kernel = region.tuning.add_site(site("kernel", false));
  for (int entry = 0; entry < 200 && !region.tuning.finished(); ++entry) {
    const PassPlan plan = region.tuning.begin_pass(tests::next_pass(), region.now += 1, false);
    region.tuning.end_pass(plan.pass, std::array{kernel}, {}, region.now);
    const std::uint32_t config = plan.configs.empty() ? 0 : plan.configs[kernel];
    region.tuning.add_result({plan.pass, {{kernel, config, 1, 1e-6}}, 1e-6}, region.now);
  }
  CHECK(region.tuning.finished());
  CHECK(region.answers.questions == 0);
}

TEST_CASE("A collective that comes when all is settled brings the others in", "[joining]") {
  Region region;
  PassId alone{};
  const SiteIndex kernel = region.tuning.add_site(site("kernel", false));
  for (int entry = 0; entry < 200 && !region.tuning.finished(); ++entry) {
    const PassPlan plan = region.tuning.begin_pass(tests::next_pass(), region.now += 1);
    alone = plan.pass;
    region.tuning.end_pass(plan.pass, std::array{kernel}, {}, region.now);
    const std::uint32_t config = plan.configs[kernel];
    region.tuning.add_result({plan.pass, {{kernel, config, 1, 1e-6}}, 1e-6}, region.now);
  }
  REQUIRE(region.tuning.finished());
  region.answers.state = Companions::State::Known;
  (void)region.tuning.add_site(site("collective", true));
  CHECK_FALSE(region.tuning.finished());
  const PassPlan last = region.enter();
  CHECK_FALSE(last.counted);
  CHECK(region.answers.coordinator.asked == 1);
  // What comes in of the search alone now is about passes that are no more.
  region.tuning.add_result({alone, {{kernel, 0, 1, 1.0}}, 1.0}, region.now);
  CHECK_FALSE(region.tuning.finished());
}

TEST_CASE("Entries that went by without a search have the same numbers for the others",
          "[joining]") {
  Region region;
  region.answers.state = Companions::State::Known;
  (void)region.tuning.add_site(site("collective", true));
  (void)region.enter();
  const std::uint64_t before = region.tuning.progress().entries;
  region.tuning.skip_entries(7);
  CHECK(region.tuning.progress().entries == before + 7);
  (void)region.enter();
  CHECK(region.tuning.progress().entries == before + 8);
}

TEST_CASE("Certain companions are asked for after one entry, without any collective", "[joining]") {
  Region region;
  region.answers.any = region.answers.certain = true;
  region.answers.state = Companions::State::Known;
  (void)region.tuning.add_site(site("kernel", false));
  CHECK(region.enter().configs.empty());
  CHECK(region.answers.questions == 0);
  (void)region.enter();
  CHECK(region.answers.questions == 1);
  CHECK(region.answers.coordinator.asked == 1);
}
