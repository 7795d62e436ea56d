#include "intercept/runtime/unmatched_names.hpp"

#include <algorithm>
#include <set>

#include <contextune/error.hpp>

#include "intercept/collectives/process_collectives.hpp"
#include "intercept/host/name_pattern.hpp"
#include "intercept/nccl/nccl_function.hpp"
#include "space/kernel_name.hpp"
#include "space/nearest_name.hpp"

namespace contextune::intercept {
namespace {

constexpr std::size_t most_names_given = 16;

// "; did you mean 'add'?", or "; known are add and scale.".
std::string known_names(std::string_view meant, const std::set<std::string>& names) {
  std::vector<std::string_view> all(names.begin(), names.end());
  if (!space::nearest_name(meant, all).empty()) return space::suggestion(meant, all);
  if (all.empty()) return ".";
  if (all.size() > most_names_given) all.resize(most_names_given);
  return space::suggestion({}, all) + ".";
}

void report_kernels(const std::set<std::string>& names, const std::set<std::string>& launched,
                    RuleBook& rules, EventLog& log) {
  for (const std::string& declared : rules.declared_kernels()) {
    if (launched.contains(space::normalised_name(declared))) continue;
    log.fallback(FallbackReason::NameUnmatched, {}, declared,
                 "No kernel called \"" + declared + "\" was launched in a region" +
                     known_names(declared, names));
  }
}

void report_choices(const RuleBook& rules, EventLog& log) {
  const std::set<std::string> known = rules.known_choices();
  for (const std::string& declared : rules.declared_choices()) {
    if (known.contains(declared)) continue;
    log.fallback(
        FallbackReason::NameUnmatched, {}, declared,
        "The program has no choice called \"" + declared + "\"" + known_names(declared, known));
  }
}

/// @param shown the names that it may be told of, among all
void report_expression(const char* flag, const std::string& text,
                       const std::set<std::string>& names, const std::set<std::string>& shown,
                       EventLog& log) {
  if (text.empty()) return;
  try {
    const NamePattern pattern(text);
    if (std::ranges::any_of(names, [&](const std::string& name) { return pattern.finds(name); }))
      return;
  } catch (const Error&) {
    return;  // said when it was read
  }
  log.fallback(FallbackReason::NameUnmatched, {}, {},
               std::string(flag) + " \"" + text + "\" finds nothing in the names of the kernels " +
                   "and collectives that were launched" + known_names({}, shown));
}

}  // namespace

void report_unmatched_names(const Options& options, KernelTable& kernels, RuleBook& rules,
                            EventLog& log) {
  if (options.space.empty() && options.only.empty() && options.exclude.empty() &&
      rules.declared_kernels().empty()) {
    return;  // the names of all kernels need not be read
  }
  std::set<std::string> names;
  std::set<std::string> launched;
  for (const gpu::KernelIdentity* kernel : kernels.launched()) {
    names.insert(kernel->name);
    launched.insert(space::normalised_name(kernel->name));
    launched.insert(kernel->symbol);
  }
  const bool has_kernels = !names.empty();
  if (has_kernels) report_kernels(names, launched, rules, log);
  if (has_kernels || !rules.known_choices().empty()) report_choices(rules, log);
  std::set<std::string> shown = names;
  for (const collective::Function function : collective::tunable_functions) {
    if (!process_collectives().was_seen(function)) continue;
    shown.emplace(name_of(function));
    for (std::string& name : names_of(function)) names.insert(std::move(name));
  }
  if (names.empty()) return;
  report_expression("--only", options.only, names, shown, log);
  report_expression("--exclude", options.exclude, names, shown, log);
}

}  // namespace contextune::intercept
