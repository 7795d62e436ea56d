#include "intercept/site/rule_book.hpp"

#include <contextune/buckets.hpp>
#include <contextune/error.hpp>

#include "intercept/host/roomy_stack.hpp"
#include "intercept/nccl/nccl_function.hpp"
#include "space/kernel_name.hpp"
#include "space/space_file.hpp"

namespace contextune::intercept {

void RuleBook::declare(std::shared_ptr<KernelRule> rule) {
  const std::string name = space::normalised_name(rule->kernel());
  const std::lock_guard lock(mutex_);
  by_name_[name] = &declared_.emplace_back(std::move(rule));
}

std::vector<std::string> RuleBook::declared_kernels() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> all;
  for (const auto& [name, knobs] : by_name_) all.emplace_back(knobs->rule().kernel());
  return all;
}

const space::ChoiceDeclaration* RuleBook::choice(const std::string& name) const {
  const auto found = choices_.find(name);
  try {
    const std::lock_guard lock(mutex_);
    if (!choices_.empty()) known_choices_.insert(name);
  } catch (const std::exception&) {
    // No memory: it is not shown as one that there is.
  }
  return found == choices_.end() ? nullptr : &found->second;
}

std::vector<std::string> RuleBook::declared_choices() const {
  std::vector<std::string> all;
  for (const auto& [name, declared] : choices_) all.push_back(name);
  return all;
}

std::set<std::string> RuleBook::known_choices() const {
  const std::lock_guard lock(mutex_);
  return known_choices_;
}

void RuleBook::load(const std::string& paths, const DeviceFacts& device, EventLog& log) {
  std::size_t start = 0;
  while (start < paths.size()) {
    const std::size_t end = std::min(paths.find(':', start), paths.size());
    const std::string path = paths.substr(start, end - start);
    start = end + 1;
    if (path.empty()) continue;
    try {
      // Lua's compiler recurses, and the program may have called cuInit on a small stack.
      const auto file = on_roomy_stack([&] { return space::SpaceFile::load(path, device); });
      for (const auto& rule : file.rules()) declare(rule);
      for (const auto& one : file.collectives()) declare(one);
      for (const auto& one : file.choices()) choices_[one.name] = one;
    } catch (const Error& error) {
      log.fault(error.what());
      log.fallback(FallbackReason::SpaceFile, {}, {},
                   "The space file " + path + " is not used; its kernels run their default.");
    }
  }
}

void RuleBook::declare(const space::CollectiveDeclaration& declared) {
  for (const collective::Function function : collective::tunable_functions) {
    if (name_of(function) != declared.name) continue;
    collective::FunctionSpace& one = collectives_.functions[static_cast<std::size_t>(function)];
    one.is_tuned = true;
    one.declared = declared.configs;
    if (!declared.buckets.empty()) one.buckets = Buckets::parse(declared.buckets);
    one.n_warmup = declared.n_warmup;
    one.n_repeat = declared.n_repeat;
  }
}

void RuleBook::start_collectives(const Options& options, const NameFilter& filter, EventLog& log) {
  Buckets buckets;
  try {
    buckets = Buckets::parse(options.buckets);
  } catch (const Error& error) {
    log.fault(std::string("option buckets: ") + error.what() + "; pow2 is used");
  }
  for (collective::FunctionSpace& one : collectives_.functions) {
    one.is_tuned = options.auto_knobs.collectives;
    one.buckets = buckets;
  }
  for (const collective::Function function : collective::tunable_functions)
    collectives_.functions[static_cast<std::size_t>(function)].excluded =
        filter.why_not(names_of(function));
  collectives_.takes_nearest = options.nearest_size;
  collectives_.connection_bytes = static_cast<std::uint64_t>(options.comm_memory);
  collectives_.rounding = {options.exactness, options.allow_rounding};
}

KnobProvider* RuleBook::provider_of(const KnownKernel& kernel) {
  {
    const std::lock_guard lock(mutex_);
    if (!by_name_.empty()) {
      auto found = by_name_.find(space::normalised_name(kernel.identity.name));
      if (found == by_name_.end()) found = by_name_.find(kernel.identity.symbol);
      if (found != by_name_.end()) return found->second;
    }
  }
  // NCCL's kernels wait for other ranks and are shaped by what those do.
  const bool is_nccl = kernel.identity.symbol.rfind("nccl", 0) == 0;
  return rotates_attributes_ && !is_nccl ? &attributes_ : nullptr;
}

}  // namespace contextune::intercept
