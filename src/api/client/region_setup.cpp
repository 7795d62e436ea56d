#include "api/client/region_setup.hpp"

#include <optional>

#include <contextune/error.hpp>

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

void set_up_region(contextune_entry& entry, const RegionOptions& options) {
  Options scratch;
#define CONTEXTUNE_GIVE_Region(name) give(entry, #name, options.name, scratch, &Options::name);
#define CONTEXTUNE_GIVE_Choice(name)
#define CONTEXTUNE_GIVE_Process(name)
#define CONTEXTUNE_OPTION(type, name, default_value, scope, meaning) CONTEXTUNE_GIVE_##scope(name)
#include <contextune/options.def>
#undef CONTEXTUNE_OPTION
#undef CONTEXTUNE_GIVE_Process
#undef CONTEXTUNE_GIVE_Choice
#undef CONTEXTUNE_GIVE_Region
  if (options.repeatable) check(contextune_region_option(&entry, "repeatable", "true"));
  for (const DeviceSpan& span : options.restore.buffers())
    check(contextune_region_restore_buffer(&entry, span.pointer, span.size_bytes));
}

}  // namespace contextune
