#include "intercept/measuring/pass_record.hpp"

#include <algorithm>

#include "intercept/measuring/measurement.hpp"

namespace contextune::intercept {

PassRecord::PassRecord(PassId id, Measure what, std::span<const std::uint32_t> configs)
    : pass(id), measure(what), counted(true), configs_(configs.begin(), configs.end()) {}

PassRecord::SiteCount& PassRecord::count(SiteIndex site) {
  while (sites_.size() <= site) {
    SiteCount& added = sites_.emplace_back();
    // A site beyond the plan first appeared in this pass: it runs config 0.
    if (sites_.size() <= configs_.size()) added.config = configs_[sites_.size() - 1];
  }
  return sites_[site];
}

void PassRecord::launched(SiteIndex site, std::uint32_t calls, std::uint32_t records) {
  records_ += records;
  if (site == no_site) return;
  SiteCount& counted_site = count(site);
  counted_site.calls += calls;
  counted_site.records += records;
}

void PassRecord::failed(SiteIndex site) {
  count(site).failed = true;
}

std::uint16_t PassRecord::begin_call(SiteIndex site) {
  constexpr std::size_t most_calls = 0x10000U - WorkTag::first_call;
  if (calls_.size() >= most_calls) {
    count(site).spoiled = true;
    return 0;
  }
  static_cast<void>(count(site));
  calls_.emplace_back().site = site;
  return static_cast<std::uint16_t>(WorkTag::first_call + calls_.size() - 1);
}

std::uint16_t PassRecord::begin_graph(const std::shared_ptr<const GraphWork>& work) {
  if (graphs_.size() >= WorkTag::first_call - WorkTag::first_graph) return 0;
  graphs_.emplace_back(work);
  return static_cast<std::uint16_t>(WorkTag::first_graph + graphs_.size() - 1);
}

void PassRecord::graph_launched(std::uint16_t slot, const GraphWork& work, bool apart,
                                std::uint32_t records) {
  apart = apart && slot != 0;
  records_ += apart ? work.kernels.size() : records;
  for (const GraphWork::Launches& site : work.sites) {
    SiteCount& counted_site = count(site.site);
    counted_site.calls += site.launches;
    // Records that are not told apart stay owed, so that the site gets no time that is not its own.
    counted_site.records += site.launches;
  }
}

void PassRecord::share(const GraphRecord& graph) {
  for (const auto& [site, seconds, launches] : graph.shares()) {
    SiteCount& counted_site = count(site);
    counted_site.arrived += launches;
    counted_site.seconds += seconds;
  }
}

void PassRecord::arrived(std::uint16_t slot, const TimedWork& work) {
  first_start_ = std::min(first_start_, work.start);
  last_end_ = std::max(last_end_, work.end);
  busy_seconds_ += work.end - work.start;
  if (slot >= WorkTag::first_call) {
    ++arrived_;
    const std::size_t number = slot - WorkTag::first_call;
    if (number >= calls_.size()) return;
    CallSpan& call = calls_[number];
    call.first_start = std::min(call.first_start, work.start);
    call.last_end = std::max(call.last_end, work.end);
    ++count(call.site).arrived;
    return;
  }
  if (slot >= WorkTag::first_graph) {
    const std::size_t graph = slot - WorkTag::first_graph;
    if (!work.kernel || graph >= graphs_.size()) return;  // its copies are not counted beforehand
    ++arrived_;
    if (graphs_[graph].arrived(work)) share(graphs_[graph]);
    return;
  }
  ++arrived_;
  if (slot == 0) return;
  SiteCount& counted_site = count(slot - 1U);
  ++counted_site.arrived;
  counted_site.kernels += work.kernel ? 1 : 0;
  counted_site.seconds += work.end - work.start;
}

double PassRecord::idle_share() const noexcept {
  const double seconds = last_end_ - first_start_;
  return seconds > 0 ? std::max(0.0, 1 - busy_seconds_ / seconds) : 0;
}

bool PassRecord::has_calls_of_several() const noexcept {
  return !calls_.empty() || std::ranges::any_of(sites_, [](const SiteCount& site) {
    return site.records > site.calls;
  });
}

std::vector<double> PassRecord::span_seconds() const {
  std::vector<double> seconds(sites_.size(), 0.0);
  // Records that a call left out show in the count of its site.
  for (const CallSpan& call : calls_)
    if (call.last_end > call.first_start) seconds[call.site] += call.last_end - call.first_start;
  return seconds;
}

std::vector<SiteIndex> PassRecord::sites_launched() const {
  std::vector<SiteIndex> sites;
  for (std::size_t i = 0; i < sites_.size(); ++i) {
    if (sites_[i].calls != 0 || sites_[i].failed) sites.push_back(static_cast<SiteIndex>(i));
  }
  return sites;
}

std::vector<SiteIndex> PassRecord::sites_failed() const {
  std::vector<SiteIndex> sites;
  for (std::size_t i = 0; i < sites_.size(); ++i) {
    if (sites_[i].failed) sites.push_back(static_cast<SiteIndex>(i));
  }
  return sites;
}

std::vector<SiteResult> PassRecord::sites_too_large() const {
  std::vector<SiteResult> sites;
  for (std::size_t i = 0; i < sites_.size(); ++i) {
    if (sites_[i].connection_bytes == 0) continue;
    SiteResult& one = sites.emplace_back();
    one.site = static_cast<SiteIndex>(i);
    one.config = sites_[i].config;
    one.launches = sites_[i].calls;
    one.status = SiteResult::Status::TooMuchMemory;
    one.connection_bytes = sites_[i].connection_bytes;
  }
  return sites;
}

std::optional<SiteResult> PassRecord::share_of_calls(SiteIndex index, double seconds) const {
  if (index >= sites_.size()) return std::nullopt;
  const SiteCount& site = sites_[index];
  if ((site.calls == 0 && !site.failed) || site.connection_bytes > 0) return std::nullopt;
  SiteResult one;
  one.site = index;
  one.config = site.config;
  one.launches = site.calls;
  if (site.failed) {
    one.status = SiteResult::Status::LaunchFailed;
  } else if (site.spoiled || !(seconds > 0)) {
    one.status = SiteResult::Status::Missing;
  } else {
    one.seconds = seconds / site.calls;
  }
  return one;
}

PassResult PassRecord::result(bool mean) const {
  PassResult result;
  result.pass = pass;
  result.sm_clock_hz = clock.sm_hz;
  result.throttled = clock.throttled;
  double sum = 0;
  std::uint32_t calls = 0;
  const std::vector<double> spans = span_seconds();
  for (std::size_t i = 0; i < sites_.size(); ++i) {
    const SiteCount& site = sites_[i];
    if (site.calls == 0 && !site.failed) continue;
    SiteResult& one = result.sites.emplace_back();
    one.site = static_cast<SiteIndex>(i);
    one.config = site.config;
    one.launches = site.calls;
    if (site.failed) {
      one.status = SiteResult::Status::LaunchFailed;
    } else if (site.connection_bytes > 0) {
      one.status = SiteResult::Status::TooMuchMemory;
      one.connection_bytes = site.connection_bytes;
    } else if (site.arrived < site.records || site.records == 0 || site.spoiled ||
               // Another thread launched it as the entry ended. (A copy may have several records.)
               site.kernels > site.records) {
      one.status = SiteResult::Status::Missing;
    } else {
      const double seconds = site.seconds + spans[i];
      one.seconds = seconds / site.calls;
      one.in_pieces = spans[i] > 0 && site.arrived > site.calls;
      sum += seconds;
      calls += site.calls;
    }
  }
  // A region of which a part is missing has no time.
  if (held_up_) {
    result.region_seconds = 0;
  } else if (mean) {
    result.region_seconds = calls == 0 ? 0 : sum / calls;
  } else if (complete() && arrived_ != 0) {
    result.region_seconds = last_end_ - first_start_;
  }
  if (measure == Measure::Span) result.sites.clear();
  return result;
}

}  // namespace contextune::intercept
