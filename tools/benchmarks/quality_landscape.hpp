#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace contextune::bench {

/// A region whose true times are known: sites that run one after the other, each with configs of
/// different cost, each slowed by what the site before it runs. Drawn from a seed, never by hand.
///
/// - 2 to 5 sites; 4 to 12 configs each; a site's best config takes 5 to 100 us (log-uniform).
/// - Spread of config costs: the slowest config of a site is 1.2 to 4 times its best (log-uniform);
///   the others lie between (uniform in the logarithm). Config 0 is one of them at random.
/// - Near-ties: 30 % of the configs are within 1 % of another config of their site.
/// - Coupling: a site's time is multiplied by 1 + k * w, k drawn from 10 to 30 % for each
///   neighbouring pair of sites, w from 0 to 1 for each pair of their configs.
class Landscape {
 public:
  explicit Landscape(std::uint64_t seed);

  [[nodiscard]] std::size_t num_sites() const { return costs_.size(); }
  [[nodiscard]] std::uint32_t num_configs(std::size_t site) const {
    return static_cast<std::uint32_t>(costs_[site].size());
  }

  /// Noise-free seconds of one site, given what all sites run.
  [[nodiscard]] double site_seconds(std::size_t site,
                                    const std::vector<std::uint32_t>& configs) const;
  [[nodiscard]] double region_seconds(const std::vector<std::uint32_t>& configs) const;

  /// The best of all joint configs, by exhaustion over each neighbouring pair (exact: a site
  /// depends on the one before it only).
  [[nodiscard]] double best_seconds() const;

 private:
  std::vector<std::vector<double>> costs_;  ///< [site][config], alone
  /// [site][config of the site before][config]: the factor; empty for site 0
  std::vector<std::vector<std::vector<double>>> coupling_;
};

}  // namespace contextune::bench
