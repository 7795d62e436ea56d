// The README shows what follows; its test compares the two.
#include <contextune/contextune.hpp>

contextune::Kernel("add")  // a kernel that is launched with <<<>>> somewhere
    .space(contextune::ConfigSpace().parameter("block", {64, 128, 512}))
    .apply([](const contextune::Config& config, contextune::LaunchEdit& launch) {
      launch.set_block({std::uint32_t(config.get_int("block"))});
    })
    .declare();

contextune::Tunable add_more(  // a launch of your own that has configs, the default first
    "add_more", contextune::ConfigSpace().parameter("block", {256, 128}),
    [](float*, int n) {
      return contextune::Key{{"n", n}};
    },
    [](const contextune::Config& config, float* y, int n) {
      return launch_add_more(config.get_int("block"), y, n);
    });

CONTEXTUAL_AUTOTUNE("decode", {.restore = {{state, state_bytes}}}) {  // or .repeatable = true
  launch_add(state, length);  // repeated, from the same state, until tuned, and once more
  add_more(state, length);
}

auto sum =
    contextune::region("sum", {.repeatable = true}, [&] { return launch_and_sum(x, length); });
