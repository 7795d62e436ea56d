#pragma once

#include <contextune/options.hpp>

#include "intercept/host/event_log.hpp"
#include "intercept/program/kernel_table.hpp"
#include "intercept/site/rule_book.hpp"

namespace contextune::intercept {

/// Reports the names that the user gave and that mean no kernel or collective of those that were
/// launched, and no choice of the program; at the end. Says nothing where none was launched: there
/// are other reasons for that.
void report_unmatched_names(const Options& options, KernelTable& kernels, RuleBook& rules,
                            EventLog& log);

}  // namespace contextune::intercept
