#include "ordering.hpp"

#include <algorithm>
#include <utility>

namespace {

void merge(Ordering::Moment& into, const Ordering::Moment& other) {
  for (std::size_t i = 0; i < into.size(); ++i) into[i] = std::max(into[i], other[i]);
}

bool waits_for_legacy(StreamKind kind) {
  return kind == StreamKind::Blocking || kind == StreamKind::PerThread;
}

}  // namespace

bool holds(const Ordering::Moment& moment, const Ordering::Step& step) {
  return !moment.empty() && moment[step.stream] >= step.number;
}

Ordering::Ordering(std::vector<StreamKind> kinds)
    : kinds_(std::move(kinds)),
      given_(kinds_.size()),
      host_(kinds_.size()),
      waited_(kinds_.size(), Moment(kinds_.size())),
      last_(kinds_.size(), Moment(kinds_.size())) {}

Ordering::Moment Ordering::known(std::size_t stream) const {
  Moment moment = waited_[stream];
  merge(moment, host_);
  for (std::size_t other = 0; other < kinds_.size(); ++other) {
    const bool both_ways =
        (kinds_[stream] == StreamKind::Legacy && waits_for_legacy(kinds_[other])) ||
        (kinds_[other] == StreamKind::Legacy && waits_for_legacy(kinds_[stream]));
    if (both_ways) merge(moment, last_[other]);
  }
  moment[stream] = given_[stream];
  return moment;
}

Ordering::Step Ordering::submit(std::size_t stream) {
  Moment moment = known(stream);
  const std::uint32_t number = ++given_[stream];
  moment[stream] = number;
  last_[stream] = waited_[stream] = std::move(moment);
  return {stream, number};
}

Ordering::Moment Ordering::record(std::size_t stream) const {
  Moment moment = waited_[stream];
  merge(moment, host_);
  moment[stream] = given_[stream];
  return moment;
}

void Ordering::wait(std::size_t stream, const Moment& moment) {
  if (!moment.empty()) merge(waited_[stream], moment);
}

void Ordering::host_waits(const Moment& moment) {
  if (!moment.empty()) merge(host_, moment);
}

void Ordering::join() {
  host_ = given_;
}

bool Ordering::is_over(const Step& step, std::size_t stream) const {
  return holds(known(stream), step);
}

bool Ordering::is_over_for_host(const Step& step) const {
  return holds(host_, step);
}
