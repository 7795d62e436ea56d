#include "joint_work.hpp"

#include "capture.hpp"
#include "stream_order.hpp"
#include "stream_time.hpp"
#include "timeline.hpp"

namespace simcuda {

namespace {

void report(const Stream& stream, const JointWork& work, const Span& span, double submitted,
            std::uint32_t correlation) {
  Driver& state = driver();
  if (state.listener.load(std::memory_order_acquire) == nullptr) return;
  simcuda_activity activity{};
  activity.kind = SIMCUDA_KERNEL;
  activity.start = span.start;
  activity.end = span.end;
  activity.submitted = submitted;
  activity.device = static_cast<std::uint32_t>(stream.context->device);
  activity.context = stream.context->id;
  activity.stream = stream.id;
  activity.correlation = correlation;
  activity.name = work->name;
  activity.launch.grid[0] = work->blocks;
  activity.launch.block[0] = work->threads;
  for (unsigned i = 1; i < 3; ++i) activity.launch.grid[i] = activity.launch.block[i] = 1;
  for (unsigned& extent : activity.launch.cluster) extent = 1;
  activity.launch.num_sms = state.device(stream.context->device).profile.num_sms;
  state.report(activity);
}

}  // namespace

void enqueue_joint_work(Stream& stream, const std::shared_ptr<JointWork>& work) {
  check_implicit_dependency(stream);
  forbid_while_capturing(stream);
  if (stream.hung) return;
  Driver& state = driver();
  const DeviceProfile& profile = state.device(stream.context->device).profile;
  state.host_time += profile.launch_cost;
  const double submitted = state.host_time;
  const std::uint32_t correlation = state.next_correlation++;
  const auto over = std::make_shared<Stamp>();

  // The clock. One block has a whole SM.
  const double utilisation = std::min(1.0, static_cast<double>((*work)->blocks) / profile.num_sms);
  const auto span = std::make_shared<Span>();
  reckon_time(stream, [&stream, work, span, utilisation] {
    *span = schedule_work(stream, 0, utilisation);
    (*work)->arrive((*work)->data, span->start);
  });
  put_off(
      stream,
      [&stream, work, span, over, submitted, correlation] {
        span->end = std::max(span->start, over->done);
        prolong_work(stream, span->end);
        report(stream, *work, *span, submitted, correlation);
      },
      over);

  // The memory.
  const auto posting = std::make_shared<Task>();
  posting->may_run = [work] { return (*work)->may_post((*work)->data) != 0; };
  posting->effect = [work] { (*work)->post((*work)->data); };
  submit(stream, posting);
  const auto finishing = std::make_shared<Task>();
  finishing->may_run = [work, over] {
    return (*work)->may_finish((*work)->data, &over->done) != 0;
  };
  finishing->effect = [work, over] {
    (*work)->finish((*work)->data);
    over->known = true;
    reckon_what_is_known();
  };
  submit(stream, finishing);
}

}  // namespace simcuda
