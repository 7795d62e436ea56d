#include <contextune/error.hpp>
#include <contextune/region.hpp>

#include "core/value/option_table.hpp"

namespace contextune {
namespace {

/// @throws Error with the text of the failed call
void check(int status) {
  if (status != 0) throw Error(contextune_error());
}

template <class Type>
void give(contextune_entry& entry, const char* name, const std::optional<Type>& value,
          Options& scratch, Type Options::*field) {
  if (!value) return;
  scratch.*field = *value;
  check(contextune_region_option(&entry, name, option_text(scratch, name).c_str()));
}

}  // namespace

RegionLoop::RegionLoop(const char* name, const RegionOptions& options) {
  contextune_region_begin(&entry_, name);
  configure_or_leave(options);
}

RegionLoop::RegionLoop(contextune_tunable* tunable, std::uint32_t problem,
                       const RegionOptions& options) {
  contextune_tunable_region_begin(&entry_, tunable, problem);
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
  Options scratch;
#define CONTEXTUNE_GIVE_Region(name) give(entry_, #name, options.name, scratch, &Options::name);
#define CONTEXTUNE_GIVE_Choice(name)
#define CONTEXTUNE_GIVE_Process(name)
#define CONTEXTUNE_OPTION(type, name, default_value, scope, meaning) CONTEXTUNE_GIVE_##scope(name)
#include <contextune/options.def>
#undef CONTEXTUNE_OPTION
#undef CONTEXTUNE_GIVE_Process
#undef CONTEXTUNE_GIVE_Choice
#undef CONTEXTUNE_GIVE_Region
  if (options.repeatable) check(contextune_region_option(&entry_, "repeatable", "true"));
  for (const DeviceSpan& span : options.restore.buffers())
    check(contextune_region_restore_buffer(&entry_, span.pointer, span.size_bytes));
  if (options.restore.call()) {
    restore_ = options.restore.call();
    check(contextune_region_restore_call(&entry_, &RegionLoop::restore, this));
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
