#include "core/trials/statistics.hpp"

#include <cmath>
#include <random>
#include <vector>

#include "catch.hpp"

using namespace contextune;

namespace {

double normal(std::mt19937_64& engine) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += static_cast<double>(engine() >> 11) * 0x1p-53;
  return sum;
}

}  // namespace

TEST_CASE("Mean, median and minimum of a few samples", "[statistics]") {
  const std::vector<double> odd{5, 1, 3};
  const std::vector<double> even{4, 1, 3, 100};
  CHECK(mean(odd) == 3);
  CHECK(median(odd) == 3);
  CHECK(median(even) == 3.5);
  CHECK(minimum(even) == 1);
  CHECK(cost_of(even, Selection::Mean) == 27);
  CHECK(cost_of(even, Selection::Median) == 3.5);
  CHECK(cost_of(even, Selection::Min) == 1);
}

TEST_CASE("No samples have no mean, median or minimum", "[statistics]") {
  CHECK(std::isnan(mean({})));
  CHECK(std::isnan(median({})));
  CHECK(std::isnan(minimum({})));
}

TEST_CASE("Student's t agrees with the printed tables", "[statistics]") {
  CHECK(t_quantile(0.05, 1) == Approx(6.314).epsilon(1e-3));
  CHECK(t_quantile(0.05, 2) == Approx(2.920).epsilon(1e-3));
  CHECK(t_quantile(0.05, 3) == Approx(2.353).epsilon(1e-3));
  CHECK(t_quantile(0.05, 10) == Approx(1.812).epsilon(1e-3));
  CHECK(t_quantile(0.05, 31) == Approx(1.696).epsilon(1e-3));
  CHECK(t_quantile(0.025, 7) == Approx(2.365).epsilon(1e-3));
  CHECK(t_quantile(0.01, 4) == Approx(3.747).epsilon(1e-3));
  CHECK(t_quantile(0.05, 100000) == Approx(1.645).epsilon(1e-3));
}

TEST_CASE("The paired bound is the textbook's for few pairs", "[statistics]") {
  const std::vector<double> gains{0.01, 0.02, 0.03, 0.02};
  const Bound bound = paired_bound(gains, 0.05);
  CHECK(bound.mean == Approx(0.02));
  CHECK(bound.low == Approx(0.02 - 2.3534 * deviation(gains) / 2).epsilon(1e-4));
  CHECK(paired_bound(std::vector<double>{0.5}, 0.05).low == -INFINITY);
}

TEST_CASE(
    "Pairs like these from before narrow the paired bound as the textbook's pooled variance does",
    "[statistics]") {
  const std::vector<double> gains{0.01, 0.03};
  const Scatter known{0.02, 7};
  const Bound bound = paired_bound(gains, 0.05, known);
  const double pooled = std::sqrt((0.0002 + 7 * 0.0004) / 8);
  CHECK(bound.low == Approx(0.02 - 1.8595 * pooled / std::sqrt(2.0)).margin(1e-5));
  CHECK(bound.scatter.degrees == 8);
  CHECK(paired_bound(gains, 0.05).low < 0);
}

TEST_CASE("The paired bound lies above zero in about 5 % of tries where there is no gain",
          "[statistics]") {
  std::mt19937_64 engine(7);
  for (const std::size_t pairs : {4U, 16U, 32U}) {
    int above = 0;
    for (int i = 0; i < 4000; ++i) {
      std::vector<double> gains(pairs);
      for (double& gain : gains) gain = 0.03 * normal(engine);
      above += paired_bound(gains, 0.05).low > 0;
    }
    CHECK(above > 4000 * 0.03);
    CHECK(above < 4000 * 0.07);
  }
}

TEST_CASE("One interrupted pass among many does not move the paired bound below zero",
          "[statistics]") {
  std::vector<double> gains(32, 0.02);
  for (std::size_t i = 0; i < gains.size(); ++i) gains[i] += i % 2 == 0 ? 0.005 : -0.005;
  gains[5] = -9;
  CHECK(paired_bound(gains, 0.05).low > 0.01);
}

TEST_CASE("The difference of two means is the textbook's", "[statistics]") {
  const std::vector<double> a{1, 2, 3, 4};
  const std::vector<double> b{3, 5, 4, 6};
  const Interval interval = difference(paired_bound(a, 0.025), paired_bound(b, 0.025), 0.025);
  const double error = std::sqrt(2 * deviation(a) * deviation(a) / 4);
  CHECK(interval.middle == Approx(2));
  CHECK(interval.low == Approx(2 - 2.4469 * error).epsilon(1e-4));  // 6 degrees
  CHECK(interval.high == Approx(2 + 2.4469 * error).epsilon(1e-4));
  const Interval unknown =
      difference(paired_bound(a, 0.025), paired_bound(std::vector{1.0}, 0.025), 0.025);
  CHECK(unknown.low == -INFINITY);
  CHECK(unknown.high == INFINITY);
  const std::vector<double> still{2, 2, 2};
  CHECK(difference(paired_bound(still, 0.025), paired_bound(still, 0.025), 0.025).high == 0);
}

TEST_CASE("The interval of a difference misses none in about 5 % of tries, and fewer with outliers",
          "[statistics]") {
  std::mt19937_64 engine(11);
  for (const std::size_t number : {3U, 5U, 12U}) {
    for (const bool has_outliers : {false, true}) {
      int missed = 0;
      const auto bound = [&](double noise) {
        std::vector<double> samples(number);
        for (double& sample : samples) sample = noise * normal(engine);
        if (has_outliers && engine() % 3 == 0) samples.front() += 1;
        return paired_bound(samples, 0.025, {}, 0, trim_of_few);
      };
      for (int i = 0; i < 4000; ++i) {
        const Interval interval = difference(bound(0.01), bound(0.02), 0.025);
        missed += interval.low > 0 || interval.high < 0;
      }
      CAPTURE(number, has_outliers, missed);
      if (!has_outliers) CHECK(missed > 4000 * 0.02);
      CHECK(missed < 4000 * 0.065);
    }
  }
}

TEST_CASE("One interrupted pass of five does not widen the interval of a difference much",
          "[statistics]") {
  const std::vector<double> a{0.00, 0.01, 0.02, 0.01, 0.00};
  std::vector<double> b{0.10, 0.11, 0.12, 0.11, 0.10};
  const auto between = [&] {
    return difference(paired_bound(a, 0.025, {}, 0, trim_of_few),
                      paired_bound(b, 0.025, {}, 0, trim_of_few), 0.025);
  };
  CHECK(between().low > 0.05);
  b[2] = 2;
  CHECK(between().low > 0.05);
}

TEST_CASE("Pooled noise finds the noise and not the outlier or the differences between groups",
          "[statistics]") {
  std::mt19937_64 engine(3);
  PooledNoise noise;
  for (int group = 0; group < 200; ++group) {
    std::vector<double> samples;
    for (int i = 0; i < 5; ++i) samples.push_back((1 + group) * (1 + 0.02 * normal(engine)));
    if (group % 20 == 0) samples[0] *= 3;
    noise.add(samples);
  }
  CHECK(noise.relative() == Approx(0.02).epsilon(0.2));
  CHECK(noise.degrees() == 800);
}

TEST_CASE("Groups of one sample say nothing about noise", "[statistics]") {
  PooledNoise noise;
  noise.add(std::vector<double>{1});
  CHECK(noise.degrees() == 0);
  CHECK(noise.relative() == 0);
}

TEST_CASE("What a gain owes to the order of its pair is taken off", "[statistics]") {
  const std::vector<double> gains{0.31, -0.29, 0.29, -0.31};
  const std::vector<double> rest = without_order(gains);
  CHECK(mean(rest) == Approx(mean(gains)).margin(1e-12));
  CHECK(deviation(rest) < 0.02);
  CHECK(without_order(std::vector<double>{0.5}) == std::vector<double>{0.5});
}

TEST_CASE("A bound that knows that the order was taken off errs in about 5 % of tries",
          "[statistics]") {
  std::mt19937_64 engine(9);
  for (const std::size_t pairs : {4U, 8U, 32U}) {
    int above = 0;
    for (int i = 0; i < 4000; ++i) {
      std::vector<double> gains(pairs);
      for (std::size_t k = 0; k < pairs; ++k)
        gains[k] = 0.03 * normal(engine) + (k % 2 == 0 ? 0.4 : -0.4);
      above += paired_bound(without_order(gains), 0.05, {}, 1).low > 0;
    }
    CHECK(above > 4000 * 0.03);
    CHECK(above < 4000 * 0.07);
  }
}
