// A body that the host launches slowly, where there is no memory to have the GPU wait with.
#include <cstdlib>

#include <simcuda/simcuda.h>
#include <contextune/contextune.hpp>

#include "catch.hpp"
#include "program.hpp"
#include "short_tuning.hpp"

TEST_CASE("A body for which there is no memory to hold it is compared as it is, and that is said",
          "[region]") {
  const CUdeviceptr y = Program::on().floats(64);
  contextune::Tunable add("unheld.add", blocks(), [&](const contextune::Config& config) {
    return Program::on().add(y, 64, 1.0F, 1, block_of(config));
  });
  CONTEXTUAL_AUTOTUNE("unheld", {.repeatable = true}) {
    add();
    simcuda_host_work(100e-6);  // longer than any of the kernels takes
    if (Program::on().launch("set", y, 64, 1.0F, 1, 256) != CUDA_SUCCESS) std::abort();
  }
  CHECK(log_lines({"reason=not_held", "region=unheld ", "no memory"}).size() == 1);
}
