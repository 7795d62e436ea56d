#include "core/search/pending_passes.hpp"

#include <utility>

namespace contextune {

void PendingPasses::open(PendingPass pass) {
  open_ = pass.id;
  passes_.emplace(pass.id, std::move(pass));
}

PendingPass* PendingPasses::open_pass() {
  if (!open_) return nullptr;
  const auto at = passes_.find(*open_);
  return at == passes_.end() ? nullptr : &at->second;
}

PendingPass* PendingPasses::end_entry() {
  PendingPass* const pass = open_pass();
  entered_ = false;
  open_.reset();
  if (pass != nullptr) pass->ended = true;
  return pass;
}

bool PendingPasses::has_ended(PassId id) const {
  const auto at = passes_.find(id);
  return at != passes_.end() && at->second.ended;
}

PendingPass PendingPasses::take(PassId id) {
  return std::move(passes_.extract(id).mapped());
}

void PendingPasses::wait(double now) {
  if (waited_++ == 0) waiting_since_ = now;
}

std::uint64_t PendingPasses::stop_waiting() {
  return std::exchange(waited_, 0);
}

bool PendingPasses::has_waited(std::uint64_t entries, double seconds, double now) const {
  return waited_ >= entries && now - waiting_since_ >= seconds && !passes_.empty();
}

}  // namespace contextune
