#include "intercept/runtime/program_launches.hpp"

#include <exception>
#include <string>

#include "intercept/collectives/process_collectives.hpp"
#include "intercept/graphs/graph_table.hpp"
#include "intercept/host/own_arithmetic.hpp"
#include "intercept/host/uncancelled.hpp"
#include "intercept/marks/open_regions.hpp"
#include "intercept/program/capture_watch.hpp"
#include "intercept/program/replay_gate.hpp"
#include "intercept/recording/recorder.hpp"
#include "intercept/regions/tunable_launch.hpp"
#include "intercept/runtime/nccl_calls.hpp"
#include "intercept/runtime/process_regions.hpp"
#include "intercept/runtime/process_submission.hpp"
#include "intercept/runtime/process_timers.hpp"

namespace contextune::intercept {

void ProgramLaunches::read_marks() {
  for (const RegionMark& mark : regions_.marks())
    if (mark.kind == RegionMark::Kind::Kernel) kernel_marks_.add(mark);
  graphs_are_regions_ = regions_.has_mark(RegionMark::Kind::Graph);
  if (!kernel_marks_.empty()) open_.watch_always();
}

bool ProgramLaunches::is_current(CUcontext context) const noexcept {
  if (context == nullptr) return true;
  CUcontext current = nullptr;
  (void)services_.driver.cuCtxGetCurrent(&current);
  return current == context;
}

CUresult ProgramLaunches::launch(const contextune_launch& call) noexcept {
  ThreadState& thread = thread_of(call);
  if (LaunchRegion* const found = nccl_.found_region();
      found != nullptr && ProcessCollectives::is_inside() && thread.region == nullptr &&
      thread.call == nullptr && !thread.collectives.pass_launches() && !recorder_.active()) {
    return launch_in_found(call, *found);
  }
  if (submission_.tuning().watches()) {
    if (thread.region == nullptr && open_.only() == nullptr && kernel_marks_.empty() &&
        thread.call == nullptr && !thread.collectives.pass_launches() && !recorder_.active()) {
      SubmissionTuning& tuning = submission_.tuning();
      const bool by_nccl = tuning.may_look() && ProcessCollectives::is_inside();
      return after_launch(tuning.launch(call, thread, by_nccl));
    }
    if (submission_.submitter().holds()) submission_.submitter().hand_over();
    if (submission_.tuning().is_pinned()) {
      if (const auto* region = thread.region != nullptr ? thread.region : open_.only())
        submission_.say_pin_does_not_act(*region);
    }
  }
  if (thread.collectives.pass_launches()) return launcher_.as_written(call);
  const LaunchRegion* region = thread.region != nullptr ? thread.region : open_.only();
  if (const SettledLaunch* known = thread.settled.find(call, region);
      known != nullptr && thread.call == nullptr && is_current(known->context)) {
    if (known->launch == nullptr) return after_launch(launcher_.as_written(call));
    const CUresult result = known->issue(call);
    // A config that cannot be launched any more goes the slow way, which launches something else.
    if (result == CUDA_SUCCESS || !is_launch_config_error(result)) return after_launch(result);
  }
  return after_launch(launch_slowly(call, thread));
}

CUresult ProgramLaunches::launch_in_found(const contextune_launch& call,
                                          LaunchRegion& found) noexcept {
  const Uncancelled uncancelled;
  const OwnArithmetic arithmetic;
  if (submission_.submitter().holds()) submission_.submitter().hand_over();
  if (is_stopped()) return launcher_.as_written(call);
  return after_launch(found.launch(call, true));
}

CUresult ProgramLaunches::launch_slowly(const contextune_launch& call,
                                        ThreadState& thread) noexcept {
  const Uncancelled uncancelled;
  const OwnArithmetic arithmetic;
  services_.gate.pass();
  if (is_stopped()) return launcher_.as_written(call);
  if (thread.call != nullptr && thread.call->is_aside()) return launcher_.as_written(call);
  if (DiscoveredPeriods* periods = submission_.periods()) periods->launch(call);
  if (!kernel_marks_.empty() && services_.gate.is_open()) {
    try {
      CUcontext context = nullptr;
      (void)services_.driver.cuCtxGetCurrent(&context);
      if (const RegionMark* mark = kernel_marks_.find(call.function, context)) {
        if (LaunchRegion* region = regions_.of_mark(*mark))
          region->entries().begin_next_in_process();
      }
    } catch (const std::exception& error) {
      services_.log.fallback(FallbackReason::InternalError, {}, {}, error.what());
    }
  }
  if (recorder_.active() && !ProcessCollectives::is_inside()) {
    if (thread.call != nullptr) {
      recorder_.obstruct(FallbackReason::UnsupportedLaunch, "A tunable chooses its launch itself.");
    }
    return recorder_.launch(call);
  }
  if (thread.region != nullptr) return thread.region->launch(call, thread.counts);
  if (LaunchRegion* only = open_.only()) return only->launch(call, true);
  unassigned_.fetch_add(1, std::memory_order_relaxed);
  if (open_.several() && !said_unassigned_.load(std::memory_order_relaxed) &&
      !said_unassigned_.exchange(true)) {
    services_.log.fallback(FallbackReason::NoOpenRegion, {}, {}, {});
  }
  return launcher_.as_written(call);
}

CUresult ProgramLaunches::launch_graph(const GraphCall& call) noexcept {
  services_.gate.pass();
  timers_.note_graph();
  if (services_.captures.possible() && services_.captures.is_capturing(call.stream)) {
    recorder_.obstruct(FallbackReason::Capture, {});
    return services_.graphs.real(call.fn)(call.exec,
                                          call.given_stream);  // as a node of another graph
  }
  ThreadState& thread = this_thread();
  // How many records it makes is not known: a call that is timed as a whole has no sample then.
  if (thread.call != nullptr && thread.call->is_span()) TunableLaunch::cannot_time(*thread.call);
  if (is_stopped() || thread.call != nullptr) {
    return services_.graphs.as_written(call);
  }
  if (recorder_.active()) return recorder_.launch_graph(call);
  if (DiscoveredPeriods* periods = submission_.periods())
    periods->step(StepKind::GraphLaunch, reinterpret_cast<std::uintptr_t>(call.exec));
  LaunchRegion* region = thread.region != nullptr ? thread.region : open_.only();
  const bool counts = thread.region == nullptr || thread.counts;
  if (graphs_are_regions_ || (region != nullptr && region->leaves_graphs())) {
    if (LaunchRegion* own = regions_.of_graph(call.exec)) {
      own->entries().begin_on_thread(RegionEntries::graph_mark, false);
      timers_.note_graph();  // CUPTI may have come with the entry
      const bool is_in = thread.region == own;
      const CUresult result = recorder_.active() ? recorder_.launch_graph(call)
                                                 : own->launch_graph(call, is_in && thread.counts);
      if (is_in) own->entries().end_on_thread(RegionEntries::graph_mark);
      return result;
    }
  }
  if (region != nullptr) return region->launch_graph(call, counts);
  if (submission_.tuning().watches()) submission_.tuning().launches_graph(call);
  return submission_.graphs().launch(call);
}

void ProgramLaunches::unsupported(const char* entry_point) noexcept {
  try {
    const ThreadState& thread = this_thread();
    const LaunchRegion* const region = thread.region != nullptr ? thread.region : open_.only();
    if (region == nullptr) return;
    services_.log.fallback(
        FallbackReason::UnsupportedLaunch, region->name(), {},
        std::string("A launch by ") + entry_point + " runs as the program wrote it.");
  } catch (const std::exception&) {
    // Not said, then.
  }
}

}  // namespace contextune::intercept
