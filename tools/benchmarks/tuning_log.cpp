#include "tuning_log.hpp"

#include <fstream>
#include <set>
#include <stdexcept>

#include "log_field.hpp"

namespace tuning_bench {
namespace {

using bench::field;
using bench::number;

/// Adds the time between stages to the stage that it was spent in, less what the timers took.
class Clock {
 public:
  explicit Clock(Parts& parts) : parts_(parts) {}

  void enter(const std::string& stage, double now) {
    if (!stage_.empty()) *part_of(stage_) += now - since_ - timers_;
    stage_ = stage;
    since_ = now;
    timers_ = 0;
  }
  void timer(const std::string& action, double seconds) {
    (action == "open" ? parts_.open : parts_.release) += seconds;
    timers_ += seconds;
  }
  [[nodiscard]] const std::string& stage() const { return stage_; }

 private:
  double* part_of(const std::string& stage) {
    return stage == "refine"    ? &parts_.refine
           : stage == "confirm" ? &parts_.confirm
                                : &parts_.table;
  }
  Parts& parts_;
  std::string stage_;
  double since_ = 0;
  double timers_ = 0;
};

}  // namespace

Parts read_parts(const std::string& folder) {
  std::ifstream log(folder + "/rank-0.log");
  if (!log) throw std::runtime_error("there is no rank log in " + folder);
  Parts parts;
  Clock clock(parts);
  std::set<std::string> table_passes;
  bool finished = false;
  for (std::string line; std::getline(log, line);) {
    const std::string event = field(line, "event");
    if (event == "timer") {
      clock.timer(field(line, "action"), number(line, "time_us") * 1e-6);
      if (field(line, "action") == "open") parts.timer = field(line, "timer");
    }
    if (field(line, "region") != "bench") continue;
    if (event == "stage") {
      clock.enter(field(line, "stage"), number(line, "elapsed_us") * 1e-6);
      finished = field(line, "stage") == "finished";
    } else if (event == "trial" && clock.stage() == "table") {
      table_passes.insert(field(line, "pass"));
    }
  }
  if (!finished)
    throw std::runtime_error("the rank log in " + folder + " tells of no finished tuning");
  parts.table_passes = static_cast<int>(table_passes.size());
  return parts;
}

}  // namespace tuning_bench
