#include "quality_landscape.hpp"

#include <algorithm>
#include <cmath>

namespace contextune::bench {
namespace {

/// The standard's distributions may differ from library to library; these do not.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed) {}
  double uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(engine_() >> 11) * 0x1p-53;
  }
  double log_uniform(double low, double high) {
    return std::exp(uniform(std::log(low), std::log(high)));
  }
  std::size_t whole(std::size_t low, std::size_t high) {
    return low + static_cast<std::size_t>(engine_() % (high - low + 1));
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace

Landscape::Landscape(std::uint64_t seed) {
  Draw draw(seed);
  const std::size_t num_sites = draw.whole(2, 5);
  for (std::size_t site = 0; site < num_sites; ++site) {
    const double best = draw.log_uniform(5e-6, 100e-6);
    const double worst = draw.log_uniform(1.2, 4.0);
    std::vector<double>& costs = costs_.emplace_back(draw.whole(4, 12));
    for (double& cost : costs) cost = best * draw.log_uniform(1.0, worst);
    *std::min_element(costs.begin(), costs.end()) = best;
    for (double& cost : costs) {
      if (draw.uniform(0, 1) < 0.3) {
        cost = costs[draw.whole(0, costs.size() - 1)] * draw.uniform(0.99, 1.01);
      }
    }
    auto& coupling = coupling_.emplace_back();
    if (site == 0) continue;
    const double strength = draw.uniform(0.10, 0.30);
    coupling.assign(costs_[site - 1].size(), std::vector<double>(costs.size()));
    for (auto& row : coupling)
      for (double& factor : row) factor = 1 + strength * draw.uniform(0, 1);
  }
}

double Landscape::site_seconds(std::size_t site, const std::vector<std::uint32_t>& configs) const {
  const double alone = costs_[site][configs[site]];
  return site == 0 ? alone : alone * coupling_[site][configs[site - 1]][configs[site]];
}

double Landscape::region_seconds(const std::vector<std::uint32_t>& configs) const {
  double sum = 0;
  for (std::size_t site = 0; site < num_sites(); ++site) sum += site_seconds(site, configs);
  return sum;
}

double Landscape::best_seconds() const {
  std::vector<double> reached = costs_[0];  // cheapest way to each config of the site so far
  for (std::size_t site = 1; site < num_sites(); ++site) {
    std::vector<double> next(costs_[site].size(), INFINITY);
    for (std::size_t before = 0; before < reached.size(); ++before)
      for (std::size_t here = 0; here < next.size(); ++here)
        next[here] = std::min(next[here],
                              reached[before] + costs_[site][here] * coupling_[site][before][here]);
    reached = std::move(next);
  }
  return *std::min_element(reached.begin(), reached.end());
}

}  // namespace contextune::bench
