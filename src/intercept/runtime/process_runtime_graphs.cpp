// Launches of graphs: whose they are.

#include "intercept/regions/tunable_launch.hpp"
#include "intercept/runtime/process_runtime.hpp"

namespace contextune::intercept {

CUresult ProcessRuntime::launch_graph(const GraphCall& call) noexcept {
  gate_.pass();
  graph_is_used();
  if (captures_.possible() && captures_.is_capturing(call.stream)) {
    recorder_.obstruct(FallbackReason::Capture, {});
    return graphs_.real(call.fn)(call.exec, call.given_stream);  // as a node of another graph
  }
  ThreadState& thread = this_thread();
  // How many records it makes is not known: a call that is timed as a whole has no sample then.
  if (thread.call != nullptr && thread.call->is_span()) TunableLaunch::cannot_time(*thread.call);
  if (stopped_.load(std::memory_order_acquire) || thread.call != nullptr) {
    return graphs_.as_written(call);
  }
  if (recorder_.active()) return recorder_.launch_graph(call);
  if (DiscoveredPeriods* periods = submission_.periods())
    periods->step(StepKind::GraphLaunch, reinterpret_cast<std::uintptr_t>(call.exec));
  LaunchRegion* region = thread.region != nullptr ? thread.region : open_.only();
  const bool counts = thread.region == nullptr || thread.counts;
  if (graphs_are_regions_ || (region != nullptr && region->leaves_graphs())) {
    if (LaunchRegion* own = regions_.of_graph(call.exec)) {
      own->entries().begin_on_thread(RegionEntries::graph_mark, false);
      graph_is_used();  // CUPTI may have come with the entry
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

}  // namespace contextune::intercept
