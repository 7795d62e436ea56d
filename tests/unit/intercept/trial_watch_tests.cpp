#include "intercept/program/trial_watch.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <semaphore>
#include <utility>

#include "catch.hpp"

namespace {

using contextune::intercept::TrialWatch;

constexpr std::chrono::seconds patience{20};

/// What is left of one that is looked after once it has gone.
struct Told {
  std::atomic<int> looks{0};
  std::binary_semaphore begun{0};
  std::binary_semaphore may_end{0};
  std::binary_semaphore gone{0};
};

/// Is still at its look until it is told that it may end, and wants another one at once.
class Lingering final : public TrialWatch::Watched {
 public:
  explicit Lingering(std::shared_ptr<Told> told) : told_(std::move(told)) {}
  ~Lingering() override { told_->gone.release(); }
  double look() noexcept override {
    ++told_->looks;
    told_->begun.release();
    told_->may_end.acquire();
    return 1e-6;
  }

 private:
  const std::shared_ptr<Told> told_;
};

/// Lets it go while it is at its next look, which is its last.
void end_at_look(std::shared_ptr<Lingering>& one, Told& told) {
  REQUIRE(told.begun.try_acquire_for(patience));
  one.reset();
  CHECK_FALSE(told.gone.try_acquire());
  told.may_end.release();
  REQUIRE(told.gone.try_acquire_for(patience));
}

/// The watch has come to all appointments before this one.
void await_later_look() {
  const auto told = std::make_shared<Told>();
  auto later = std::make_shared<Lingering>(told);
  REQUIRE(TrialWatch::get().watch(later, 0.05));
  end_at_look(later, *told);
}

}  // namespace

TEST_CASE("Nobody waits for a look that does not end, which keeps what it looks at", "[watch]") {
  const auto told = std::make_shared<Told>();
  auto one = std::make_shared<Lingering>(told);
  REQUIRE(TrialWatch::get().watch(one, 0));
  end_at_look(one, *told);
  await_later_look();
  CHECK(told->looks == 1);
}

TEST_CASE("A look that is due is left out where nobody has what it is about any more", "[watch]") {
  const auto told = std::make_shared<Told>();
  auto one = std::make_shared<Lingering>(told);
  REQUIRE(TrialWatch::get().watch(one, 0.01));
  one.reset();
  CHECK(told->gone.try_acquire());
  await_later_look();
  CHECK(told->looks == 0);
}

TEST_CASE("A look is repeated as long as it asks for it", "[watch]") {
  const auto told = std::make_shared<Told>();
  auto one = std::make_shared<Lingering>(told);
  REQUIRE(TrialWatch::get().watch(one, 0));
  for (int i = 0; i < 3; ++i) {
    REQUIRE(told->begun.try_acquire_for(patience));
    told->may_end.release();
  }
  end_at_look(one, *told);
}
