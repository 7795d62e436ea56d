#include "cli/live/live_report.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "cli/logs/log_contents.hpp"
#include "cli/page/page_data.hpp"

namespace contextune::cli {
namespace {

// A look begins so long after the last one, or so many times what that took.
constexpr LiveReport::Clock::duration least_pause = std::chrono::milliseconds(500);
constexpr LiveReport::Clock::duration most_pause = std::chrono::seconds(10);
constexpr int pauses_a_look = 4;

}  // namespace

LiveReport::LiveReport(asio::io_context& loop, std::string path, std::string run)
    : loop_(loop), path_(std::move(path)), run_(std::move(run)), logs_(path_) {}

LiveReport::~LiveReport() {
  stopped_ = true;
  worker_.join();
}

void LiveReport::get(Ready ready) {
  if (!at_work_ && Clock::now() < next_look_) return ready(snapshot_);
  waiting_.push_back(std::move(ready));
  if (!at_work_) look();
}

void LiveReport::look() {
  at_work_ = true;
  asio::post(worker_, [this] {
    const Clock::time_point begin = Clock::now();
    std::shared_ptr<const LiveSnapshot> snapshot;
    try {
      snapshot = newest();
    } catch (const std::exception&) {
      // Such as too little memory: whoever asks is told that there is none, and may ask again.
    }
    asio::post(loop_, [this, snapshot = std::move(snapshot), took = Clock::now() - begin] {
      hand_out(snapshot, took);
    });
  });
}

std::shared_ptr<const LiveSnapshot> LiveReport::newest() {
  const bool changed = logs_.read_new(stopped_);
  if (stopped_ || (made_ && !changed)) return made_;
  made_.reset();  // if the next one cannot be made, this one is not the newest
  LogContents contents;
  contents.folder = path_;
  contents.processes = logs_.processes();
  contents.bad_lines = logs_.bad_lines();
  contents.num_bad_lines = logs_.num_bad_lines();
  contents.num_records = logs_.num_records();
  select_run(contents, run_);
  made_ = std::make_shared<LiveSnapshot>(LiveSnapshot{++number_, page_data(contents)});
  return made_;
}

void LiveReport::hand_out(std::shared_ptr<const LiveSnapshot> snapshot, Clock::duration took) {
  at_work_ = false;
  snapshot_ = std::move(snapshot);
  next_look_ = Clock::now() + std::clamp(pauses_a_look * took, least_pause, most_pause);
  for (const Ready& ready : std::exchange(waiting_, {})) ready(snapshot_);
}

}  // namespace contextune::cli
