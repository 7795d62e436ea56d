#pragma once

#include <atomic>
#include <utility>
#include <vector>

#include <contextune/options.hpp>

#include "gpu/driver/driver.hpp"
#include "intercept/ranks/job_ranks.hpp"
#include "intercept/ranks/process_ranks.hpp"

namespace contextune::intercept {

/// The ranks of this process's job, under the options of the process.
class ProgramRanks final : public JobRanks {
 public:
  /// All outlive it.
  /// @param stopped tuning has ended: nobody is joined any more
  ProgramRanks(ProcessRanks& ranks, const Options& options, const gpu::Driver& driver,
               const std::atomic<bool>& stopped)
      : ranks_(ranks), options_(options), driver_(driver), stopped_(stopped) {}

  [[nodiscard]] RankPlace place() override { return ranks_.place(); }
  [[nodiscard]] std::string join(void* communicator, double seconds) override;
  void expect() override { ranks_.expect(options_); }
  [[nodiscard]] RankGroup members(const void* communicator, std::uint32_t ranks) override {
    return ranks_.groups().members(communicator, ranks, options_);
  }
  [[nodiscard]] RankGroup named(std::vector<std::uint32_t> ranks) override {
    return ranks_.groups().named(std::move(ranks), options_);
  }
  void announce_communicators() noexcept override { ranks_.groups().announce_communicators(); }
  [[nodiscard]] std::unique_ptr<Lockstep> lockstep(const std::string& of, const RankGroup& group,
                                                   std::string& why) override {
    return ranks_.groups().lockstep_among(of, group, options_, why);
  }

 private:
  ProcessRanks& ranks_;
  const Options& options_;
  const gpu::Driver& driver_;
  const std::atomic<bool>& stopped_;
};

}  // namespace contextune::intercept
