#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "collective/collective_space.hpp"
#include "intercept/host/name_filter.hpp"
#include "intercept/site/declared_knobs.hpp"
#include "intercept/site/safe_attributes.hpp"
#include "intercept/site/site_table.hpp"
#include "space/declaration.hpp"

namespace contextune::intercept {

/// All that is declared about kernels in this process, and the safe attributes for the others if
/// they are wanted. Any thread.
class RuleBook final : public KnobSource {
 public:
  RuleBook(const gpu::Driver& driver, const ProgramAttributes& program, bool rotates_attributes)
      : attributes_(driver, program), rotates_attributes_(rotates_attributes) {}

  /// Counts before what was declared earlier for the same kernel.
  void declare(std::shared_ptr<KernelRule> rule);
  /// Reads the space files of the option `space`; those that cannot be used are reported.
  void load(const std::string& paths, const DeviceFacts& device, EventLog& log);

  /// The space files' declaration of a choice; null: there is none.
  [[nodiscard]] const space::ChoiceDeclaration* choice(const std::string& name) const;

  /// The kernels that something is declared about, as their author wrote them.
  [[nodiscard]] std::vector<std::string> declared_kernels();
  /// The choices that the space files name, and those that choice() was asked about.
  [[nodiscard]] std::vector<std::string> declared_choices() const;
  [[nodiscard]] std::set<std::string> known_choices() const;

  /// Takes up what the options want of collectives; before load().
  void start_collectives(const Options& options, const NameFilter& filter, EventLog& log);
  [[nodiscard]] const collective::CollectiveSpace& collectives() const { return collectives_; }

  [[nodiscard]] KnobProvider* provider_of(const KnownKernel& kernel) override;
  [[nodiscard]] std::mutex& provider_mutex() override { return provider_mutex_; }

 private:
  void declare(const space::CollectiveDeclaration& declared);

  collective::CollectiveSpace collectives_;
  std::map<std::string, space::ChoiceDeclaration> choices_;  ///< complete after load()
  SafeAttributes attributes_;
  const bool rotates_attributes_;
  std::mutex provider_mutex_;
  mutable std::mutex mutex_;
  mutable std::set<std::string> known_choices_;
  std::deque<DeclaredKnobs> declared_;
  std::map<std::string, DeclaredKnobs*> by_name_;  ///< normalised
};

}  // namespace contextune::intercept
