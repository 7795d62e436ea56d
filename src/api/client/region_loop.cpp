#include <contextune/error.hpp>
#include <contextune/region.hpp>

#include "api/client/region_setup.hpp"

namespace contextune {
RegionLoop::RegionLoop(const char* name, const RegionOptions& options) {
  contextune_region_begin(&entry_, name);
  configure_or_leave(options);
}

void RegionLoop::configure_or_leave(const RegionOptions& options) {
  if (contextune_region_tunes(&entry_) == 0) return;
  try {
    configure(options);
  } catch (...) {
    contextune_region_end(&entry_);
    throw;
  }
}

RegionLoop::~RegionLoop() {
  contextune_region_end(&entry_);
}

void RegionLoop::configure(const RegionOptions& options) {
  // Where they are not found the body runs once, and contextune_error() says why.
  if (options.communicator != nullptr &&
      contextune_region_communicator(&entry_, options.communicator) != 0)
    return;
  if (!options.group.empty() && contextune_region_group(&entry_, options.group.c_str()) != 0)
    return;
  set_up_region(entry_, options);
  if (options.restore.call()) {
    restore_ = options.restore.call();
    if (contextune_region_restore_call(&entry_, &RegionLoop::restore, this) != 0)
      throw Error(contextune_error());
  }
}

// Exceptions stay on this side of the C functions: the library has an unwinder of its own.
int RegionLoop::restore(void* self) noexcept {
  auto* loop = static_cast<RegionLoop*>(self);
  try {
    loop->restore_();
    return 0;
  } catch (...) {
    loop->failure_ = std::current_exception();
    return -1;
  }
}

bool RegionLoop::next() {
  const int again = contextune_region_next(&entry_);
  is_check_ = again == 2;
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  return again != 0;
}

}  // namespace contextune
