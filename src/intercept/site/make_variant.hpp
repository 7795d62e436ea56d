#pragma once

#include <optional>

#include "intercept/program/variant.hpp"
#include "intercept/site/build_queue.hpp"
#include "intercept/site/knob_provider.hpp"

namespace contextune::intercept {

/// Whether the config leaves the launch as the program wrote it.
[[nodiscard]] bool is_as_written(const VariantSpec& spec, const KernelLaunch& launch);

/// Makes the variant: finds or builds its function, checks that it takes the same arguments, raises
/// its limit of dynamic shared memory. A config that is not possible gives a variant that is not
/// usable. Absent: the build is under way; ask again later.
[[nodiscard]] std::optional<Variant> make_variant(const VariantSpec& spec,
                                                  const KernelLaunch& launch,
                                                  const gpu::Driver& driver, BuildQueue& builds);

}  // namespace contextune::intercept
