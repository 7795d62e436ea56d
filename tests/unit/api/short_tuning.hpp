// What the tests of tuned calls share: a config space of blocks, and tuning that ends soon.
#pragma once

#include <contextune/contextune.hpp>

inline contextune::ConfigSpace blocks() {
  return contextune::ConfigSpace().parameter("block", {256, 64, 128});
}

inline unsigned block_of(const contextune::Config& config) {
  return static_cast<unsigned>(config.get_int("block"));
}

inline contextune::AutotuneOptions short_runs(contextune::AutotuneOptions options = {
                                                  .repeatable = true}) {
  options.n_warmup = 0;
  options.n_repeat = 2;
  return options;
}

inline contextune::RegionOptions short_table() {
  return {.repeatable = true, .n_warmup = 0, .n_repeat = 2, .refine = false, .confirm = false};
}
