#include "intercept/rule_book.hpp"

#include <contextune/error.hpp>

#include "space/kernel_name.hpp"
#include "space/space_file.hpp"

namespace contextune::intercept {

void RuleBook::declare(std::shared_ptr<KernelRule> rule) {
  const std::string name = space::normalised_name(rule->kernel());
  const std::lock_guard lock(mutex_);
  by_name_[name] = &declared_.emplace_back(std::move(rule));
}

void RuleBook::load(const std::string& paths, const DeviceFacts& device, EventLog& log) {
  std::size_t start = 0;
  while (start < paths.size()) {
    const std::size_t end = std::min(paths.find(':', start), paths.size());
    const std::string path = paths.substr(start, end - start);
    start = end + 1;
    if (path.empty()) continue;
    try {
      const auto file = space::SpaceFile::load(path, device);
      for (const auto& rule : file.rules()) declare(rule);
    } catch (const Error& error) {
      log.fault(error.what());
      log.fallback(FallbackReason::SpaceFile, {}, {},
                   "The space file " + path + " is not used; its kernels run their default.");
    }
  }
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
  return auto_knobs_ ? &attributes_ : nullptr;
}

}  // namespace contextune::intercept
