#pragma once

#include <cstdint>
#include <map>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "core/search/region_tuning.hpp"

namespace contextune::tests {

/// Counts the decisions of one rank and tells them configs, as collectives' are, for communicators
/// of all ranks; and keeps what each was told.
class FakeDecisions final : public DecisionPort {
 public:
  std::uint64_t communicator = 77;  ///< of the decisions to come

  FakeDecisions(RegionTuning& tuning, std::uint32_t num_ranks)
      : tuning_(tuning), num_ranks_(num_ranks) {}

  /// The next decision of the site, inside the region or (`outside`) not.
  std::uint32_t decide(const std::string& name, SiteIndex site, double now) {
    Stream& stream = streams_[{name, communicator}];
    if (site != no_site && stream.site == no_site) {
      stream.site = site;
      stream.first = stream.told.size();
    }
    if (held_ && stream.limit <= stream.told.size()) {
      ++settled;
      // As a thread of the program does it: again and again, and whatever comes in between.
      for (double later = now;; later += 1) {
        try {
          if (tuning_.ranks().settle(TuningRanks::Due::Decision, later)) break;
        } catch (const std::bad_alloc&) {
          ++out_of_memory;
        }
      }
    }
    std::uint32_t config = stream.lease.afterwards;
    const std::uint64_t number = stream.told.size();
    if (number < stream.lease.first_decision) {
      config = stream.before;
    } else if (const auto pass = (number - stream.lease.first_decision) / stream.lease.per_pass;
               pass < stream.lease.configs.size()) {
      config = stream.lease.configs[pass];
    }
    stream.told.push_back(config);
    return config;
  }
  [[nodiscard]] const std::vector<std::uint32_t>& told(const std::string& name) {
    return streams_[{name, communicator}].told;
  }

  std::vector<DecisionStanding> standings() override {
    std::vector<DecisionStanding> all;
    for (const auto& [which, stream] : streams_) {
      if (stream.site == no_site) continue;
      all.push_back(
          {stream.site, which.second, num_ranks_, 1, stream.told.size(), stream.first, !unsound});
    }
    return all;
  }
  void hold(std::span<const Limit> limits) override {
    held_ = true;
    for (auto& [which, stream] : streams_) {
      stream.limit = ~0ULL;
      for (const Limit& limit : limits)
        if (limit.site == stream.site && limit.communicator == which.second)
          stream.limit = limit.decisions;
    }
  }
  void release() override { held_ = false; }
  std::string commit(const DecisionLease& lease) override {
    if (no_memory > 0 && no_memory-- > 0) throw std::bad_alloc();
    for (auto& [which, stream] : streams_) {
      const auto& [name, communicator_of_it] = which;
      if (stream.site != lease.site || communicator_of_it != lease.communicator) continue;
      ++leases;
      if (lease.first_decision < stream.told.size()) late.push_back(name);
      if (stream.told.size() < stream.lease.first_decision) late.push_back(name + ", not begun");
      stream.before = stream.lease.afterwards;
      stream.lease = lease;
    }
    return {};
  }

  bool unsound = false;
  int leases = 0;
  int settled = 0;
  int no_memory = 0;  ///< for so many leases
  int out_of_memory = 0;
  std::vector<std::string> late;

 private:
  struct Stream {
    SiteIndex site = no_site;
    std::uint64_t first = 0;
    std::uint64_t limit = 0;
    std::uint32_t before = 0;
    DecisionLease lease;
    std::vector<std::uint32_t> told;
  };
  RegionTuning& tuning_;
  std::uint32_t num_ranks_;
  std::map<std::pair<std::string, std::uint64_t>, Stream> streams_;
  bool held_ = false;
};

}  // namespace contextune::tests
