#include "joint_work.hpp"

#include <algorithm>
#include <utility>

#include "stream_order.hpp"
#include "stream_time.hpp"

namespace simcuda {

void run_joint_work(Stream& stream, const std::shared_ptr<JointWork>& work, double utilisation,
                    std::function<void(const Span&)> report) {
  const auto over = std::make_shared<Stamp>();

  // The clock.
  const auto span = std::make_shared<Span>();
  reckon_time(stream, [&stream, work, span, utilisation] {
    *span = schedule_work(stream, 0, utilisation);
    (*work)->arrive((*work)->data, span->start);
  });
  put_off(
      stream,
      [&stream, span, over, report = std::move(report)] {
        span->end = std::max(span->start, over->done);
        prolong_work(stream, span->end);
        report(*span);
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
