#pragma once

#include <cstdint>
#include <stdexcept>

#include "core/search/tuning.hpp"
#include "fake_program.hpp"
#include "recorder.hpp"

namespace contextune::tests {

/// A FakeProgram that tunes its region by itself.
class FakeRegion final : public FakeProgram {
 public:
  explicit FakeRegion(const TuningOptions& options) : tuning(options, &recorder) {}

  PassPlan entry() { return FakeProgram::entry(bounded); }

  /// Entries until it is finished; fails the test by exception if it never is.
  void run(std::uint64_t most_entries = 5000) {
    while (!tuning.finished()) {
      if (num_entries >= most_entries) throw std::runtime_error("the tuning did not finish");
      entry();
    }
  }

  /// The configs of one site, pass by pass.
  [[nodiscard]] Configs column(SiteIndex site) const {
    Configs column;
    for (const auto& [pass, configs] : rows)
      column.push_back(site < configs.size() ? configs[site] : 0);
    return column;
  }

  Recorder recorder;
  Tuning tuning;
  bool bounded = true;  ///< the program makes the entries

 private:
  RegionTuning& tuned() override { return tuning; }
};

}  // namespace contextune::tests
