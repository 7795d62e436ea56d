#include "intercept/tuner/open_pass.hpp"

#include <mutex>

namespace contextune::intercept {

OpenPass Search::pass() noexcept {
  return OpenPass(*this);
}

PassRecord* OpenPass::record_of(std::uint64_t tag) const noexcept {
  PassRecord* const open = search_.passes_.entry();
  if (open == nullptr || static_cast<std::uint32_t>(open->pass) != WorkTag::unpack(tag).pass)
    return nullptr;
  return open;
}

std::uint64_t OpenPass::tag(SiteIndex site) const noexcept {
  const auto slot =
      site + 1U < WorkTag::first_graph ? static_cast<std::uint16_t>(site + 1) : std::uint16_t{0};
  const auto pass = static_cast<std::uint32_t>(search_.entries_.current());
  return WorkTag{search_.timers_.id(), pass, slot}.pack();
}

std::uint64_t OpenPass::begin_call(SiteIndex site) {
  const std::lock_guard lock(search_.mutex_);
  WorkTag tag = WorkTag::unpack(this->tag(no_site));
  if (PassRecord* const record = record_of(tag.pack())) tag.slot = record->begin_call(site);
  return tag.pack();
}

std::uint64_t OpenPass::begin_graph(const std::shared_ptr<const GraphWork>& work) {
  const std::lock_guard lock(search_.mutex_);
  WorkTag tag = WorkTag::unpack(this->tag(no_site));
  if (PassRecord* const record = record_of(tag.pack())) tag.slot = record->begin_graph(work);
  return tag.pack();
}

bool OpenPass::touch(StreamHandle stream, bool issued) noexcept {
  if (issued && static_cast<CUstream>(stream) != CU_STREAM_PER_THREAD) return false;
  const std::lock_guard lock(search_.mutex_);
  PassRecord* const open = search_.passes_.entry();
  return open != nullptr && (open->counted || search_.probation_.probe().is_open()) &&
         search_.passes_.touch(stream, issued);
}

void OpenPass::let_go() noexcept {
  const std::lock_guard lock(search_.mutex_);
  search_.passes_.hold().drop_entry();
}

void OpenPass::forget_stream(StreamHandle stream) noexcept {
  const std::lock_guard lock(search_.mutex_);
  search_.passes_.forget_stream(stream);
}

void OpenPass::forget_context(CUcontext context) noexcept {
  const std::lock_guard lock(search_.mutex_);
  search_.passes_.forget_context(context);
}

void OpenPass::launched(std::uint64_t tag, SiteIndex site, std::uint32_t calls,
                        std::uint32_t records) {
  const std::lock_guard lock(search_.mutex_);
  PassRecord* const record = record_of(tag);
  if (record == nullptr) return;
  record->launched(site, calls, records);
  if (records != 0) search_.passes_.expect_time();
}

void OpenPass::graph_launched(std::uint64_t tag, const GraphWork& work, bool apart,
                              std::uint32_t records) {
  const std::lock_guard lock(search_.mutex_);
  if (PassRecord* const record = record_of(tag))
    record->graph_launched(WorkTag::unpack(tag).slot, work, apart, records);
}

void OpenPass::failed(std::uint64_t tag, SiteIndex site) {
  const std::lock_guard lock(search_.mutex_);
  PassRecord* const record = record_of(tag);
  if (record != nullptr && site != no_site) record->failed(site);
}

void OpenPass::took_too_much(std::uint64_t tag, SiteIndex site, std::uint64_t bytes) {
  const std::lock_guard lock(search_.mutex_);
  if (PassRecord* const record = record_of(tag)) record->took_too_much(site, bytes);
}

void OpenPass::was_held_up(std::uint64_t tag, SiteIndex site, double seconds) {
  const std::lock_guard lock(search_.mutex_);
  PassRecord* const record = record_of(tag);
  if (record == nullptr) return;
  record->hold_up(site);
  search_.tuning_->spend(seconds, record->pass);
}

void OpenPass::ran_another(std::uint64_t tag, SiteIndex site) {
  const std::lock_guard lock(search_.mutex_);
  if (PassRecord* const record = record_of(tag)) record->run_another(site);
}

void OpenPass::spoil(FallbackReason reason) {
  const std::lock_guard lock(search_.mutex_);
  PassRecord* const open = search_.passes_.entry();
  if (open != nullptr && open->counted) open->spoiled = true;
  search_.log_.fallback(reason, search_.region_, {}, {});
}

bool OpenPass::is_to_run_again() const {
  const std::lock_guard lock(search_.mutex_);
  return search_.passes_.hold().is_first_run();
}

bool OpenPass::run_again() {
  const std::lock_guard lock(search_.mutex_);
  EntryHold& hold = search_.passes_.hold();
  if (!hold.is_first_run()) return false;
  hold.end_first_run();
  search_.watch_.store(Watch::Span, std::memory_order_release);
  return true;
}

bool OpenPass::compares_regions() const {
  const std::lock_guard lock(search_.mutex_);
  const PassRecord* const open = search_.passes_.entry();
  return open != nullptr && open->counted && open->measure == Measure::Span;
}

bool OpenPass::counts() const {
  const std::lock_guard lock(search_.mutex_);
  const PassRecord* const open = search_.passes_.entry();
  return open != nullptr && open->counted;
}

}  // namespace contextune::intercept
