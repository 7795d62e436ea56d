// The kernels of the warm regions for the simulated driver.
#include <simcuda/kernel.hpp>

#include "kernels.hpp"

namespace {

using simcuda::argument;

template <Family family, Flavour flavour>
void run(const simcuda_launch* launch) {
  const Word count = argument<Word>(*launch, 0);
  for (Word at = 0; at < count; ++at) {
    do_one<family, flavour>(at, count, launch->block[0], argument<const Word*>(*launch, 1),
                            argument<Word*>(*launch, 2), argument<const Word*>(*launch, 3));
  }
}

/// The config that may be wrong is always the fastest: it must not win all the same.
void describe(const simcuda_launch* launch, simcuda_work* work) {
  work->items = 10'000;
  work->flops = launch->block[0] == wrong_block ? 1 : 1e8;
}

#define WARM_KERNEL(name, family, flavour)                                 \
  constexpr simcuda_kernel name =                                          \
      simcuda::whole_launch_kernel<Word, const Word*, Word*, const Word*>( \
          #name, &run<Family::family, Flavour::flavour>, &describe);
WARM_KERNELS(WARM_KERNEL)

}  // namespace

#define WARM_ADDRESS(name, family, flavour) &name,
SIMCUDA_KERNEL_FILE(WARM_KERNELS(WARM_ADDRESS));
