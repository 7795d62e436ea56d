#include "replay_log.hpp"

#include <fstream>
#include <stdexcept>

#include "log_field.hpp"

namespace replay_bench {
namespace {

using bench::field;
using bench::number;

constexpr double microsecond = 1e-6;

/// The config of a winner's line: what stands between its number and its time.
std::string config_of(const std::string& line) {
  const auto begin = line.find(' ', line.find(" config=") + 1);
  const auto end = line.find(" time_us=");
  if (begin == line.npos || end == line.npos || end <= begin) return "as launched";
  return line.substr(begin + 1, end - begin - 1);
}

void read_replay(const std::string& line, Tuning& tuning) {
  tuning.replayed = true;
  tuning.visit = static_cast<int>(number(line, "visit"));
  tuning.replays = static_cast<int>(number(line, "replays"));
  tuning.replay_seconds = number(line, "time_s");
  tuning.save = number(line, "save_us") * microsecond;
  tuning.restore = number(line, "restore_us") * microsecond;
  tuning.hash = number(line, "hash_us") * microsecond;
  tuning.footprint_bytes = number(line, "footprint_bytes");
  tuning.dirty_bytes = number(line, "dirty_bytes");
  tuning.device_bytes = number(line, "device_bytes");
  tuning.host_bytes = number(line, "host_bytes");
}

}  // namespace

Tuning read_tuning(const std::string& folder) {
  std::ifstream log(folder + "/rank-0.log");
  if (!log) throw std::runtime_error("there is no rank log in " + folder);
  Tuning tuning;
  bool finished = false;
  std::string why;
  for (std::string line; std::getline(log, line);) {
    if (field(line, "region") != "bench") continue;
    const std::string event = field(line, "event");
    if (event == "winner") {
      tuning.winners[field(line, "site")] = config_of(line);
    } else if (event == "confirm") {
      tuning.before = number(line, "before_us") * microsecond;
      tuning.after = number(line, "after_us") * microsecond;
    } else if (event == "summary") {
      tuning.passes = static_cast<int>(number(line, "passes"));
      tuning.entries = static_cast<int>(number(line, "entries"));
      tuning.seconds = number(line, "tuning_s");
      finished = field(line, "stage") == "finished";
    } else if (event == "replay") {
      read_replay(line, tuning);
    } else if (event == "fallback") {
      why = "; its last fallback: " + line.substr(line.find("reason="));
    }
  }
  if (!finished)
    throw std::runtime_error("the rank log in " + folder + " tells of no finished tuning" + why);
  return tuning;
}

}  // namespace replay_bench
