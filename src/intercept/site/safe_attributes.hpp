#pragma once

#include "gpu/driver/driver.hpp"
#include "intercept/program/program_attributes.hpp"
#include "intercept/site/knob_provider.hpp"

namespace contextune::intercept {

/// Launch attributes that cannot change a result, for kernels that nobody declared: the carve-out,
/// fewer blocks at a time by more dynamic shared memory, the cluster scheduling preference and the
/// priority. They are worth little, so there are few values, one knob at a time. An attribute that
/// the program has set itself is left alone.
class SafeAttributes final : public KnobProvider {
 public:
  SafeAttributes(const gpu::Driver& driver, const ProgramAttributes& program)
      : driver_(driver), program_(program) {}

  [[nodiscard]] std::string_view name() const override { return "attributes"; }
  [[nodiscard]] Key key(const KernelLaunch&, LaunchReads&) override { return {}; }
  [[nodiscard]] std::vector<Config> configs(const KernelLaunch& launch) override;
  [[nodiscard]] VariantSpec apply(const Config& config, const KernelLaunch& launch,
                                  LaunchReads& reads) override;

 private:
  void add_carveouts(const KernelLaunch& launch, std::vector<Config>& configs) const;
  void add_occupancies(const KernelLaunch& launch, std::vector<Config>& configs) const;
  void add_scheduling(const KernelLaunch& launch, std::vector<Config>& configs) const;

  const gpu::Driver& driver_;
  const ProgramAttributes& program_;
};

}  // namespace contextune::intercept
