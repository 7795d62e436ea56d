#include "core/search/selection.hpp"

#include <limits>
#include <vector>

#include <contextune/error.hpp>

#include "catch.hpp"

using namespace contextune;

namespace {

constexpr double failed = std::numeric_limits<double>::infinity();

std::vector<double> no_spread(std::size_t count) {
  return std::vector<double>(count, 0.0);
}

SelectedConfig select(std::vector<double> costs, double margin = 0.01) {
  return select_winner(costs, no_spread(costs.size()), margin);
}

}  // namespace

TEST_CASE("The lowest cost wins", "[selection]") {
  CHECK(select({10, 9, 8, 9}).config == 2);
  CHECK(select({10, 9, 8, 9}).reason == WinnerReason::Fastest);
  CHECK(select({10, 9, 9}).config == 1);
}

TEST_CASE("What lies inside the margin goes to the default", "[selection]") {
  CHECK(select({10, 9.95}).config == 0);
  CHECK(select({10, 9.95}).reason == WinnerReason::Margin);
  CHECK(select({10, 9.85}).config == 1);
}

TEST_CASE("A spread larger than the margin takes its place", "[selection]") {
  const std::vector<double> costs{10, 9.8};
  CHECK(select_winner(costs, std::vector<double>{0, 0.03}, 0.01).config == 0);
  CHECK(select_winner(costs, std::vector<double>{0, 0.015}, 0.01).config == 1);
}

TEST_CASE("Without a margin any difference counts, and ties go to the default", "[selection]") {
  const std::vector<double> spreads{0.5, 0.5};
  CHECK(select_winner(std::vector<double>{10, 9.999}, spreads, 0).config == 1);
  CHECK(select_winner(std::vector<double>{10, 10.0}, spreads, 0).config == 0);
}

TEST_CASE("Failed configs never win", "[selection]") {
  CHECK(select({10, failed, 8}).config == 2);
  CHECK(select({10, failed, failed}).config == 0);
  CHECK(select({10, failed, failed}).reason == WinnerReason::Failed);
  CHECK(select({failed, 8, 9}).config == 0);
  CHECK(select({failed, 8, 9}).reason == WinnerReason::NoSamples);
  CHECK(select({10}).reason == WinnerReason::Only);
}

TEST_CASE("Costs are dense: a config without samples, failed or cut off costs infinity",
          "[selection]") {
  std::vector<Trial> trials(4);
  trials[0] = {TrialStatus::Measured, {1, 2, 3}, {}};
  trials[1] = {TrialStatus::CutOff, {1, NAN, NAN}, {}};
  trials[2] = {TrialStatus::NoSample, {NAN, NAN, NAN}, {}};
  trials[3] = {TrialStatus::LaunchFailed, {1, NAN, NAN}, {}};
  CHECK(dense_costs(trials, Selection::Median) == std::vector<double>{2, failed, failed, failed});
}

TEST_CASE("The measured spread grows with noise and shrinks with samples", "[selection]") {
  const auto spread = [](double noise, int count) {
    std::vector<Trial> trials(2);
    for (Trial& trial : trials)
      for (int i = 0; i < count; ++i) trial.samples.push_back(1 + (i % 2 == 0 ? noise : -noise));
    return measured_spread(trials, 1);
  };
  CHECK(spread(0.02, 6) > 1.5 * spread(0.01, 6));
  CHECK(spread(0.02, 6) > 1.5 * spread(0.02, 24));
  CHECK(spread(0.0, 6) == 0);
  CHECK(spread(0.02, 1) == 0);
}
